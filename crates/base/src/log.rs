//! The port to a thread's durable log.

use crate::{BoxFuture, RunId, ThreadId, ThreadState, Update};

/// Number of durable updates of a thread: the position after the last one.
pub type Seq = i64;

/// Append-only log of threads, so that storing a step costs only its own size.
pub trait ThreadLog: Send + Sync {
    /// Returns the thread's position and state; 0 and empty for a thread without updates.
    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<(Seq, ThreadState), LogError>>;

    /// Appends a run's updates at position `at` and returns the new position once they are durable.
    fn append<'a>(
        &'a self,
        thread: &'a ThreadId,
        run: &'a RunId,
        at: Seq,
        updates: &'a [Update],
    ) -> BoxFuture<'a, Result<Seq, LogError>>;
}

/// Why updates could not be stored or loaded.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another writer appended first. The caller must reload or stop.
    #[error("the thread has moved on from position {at}")]
    Conflict {
        /// The expected position.
        at: Seq,
    },
    /// The store failed.
    #[error("the thread log failed: {0}")]
    Store(String),
}
