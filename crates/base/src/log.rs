//! The port to a thread's durable log.

use crate::{BoxFuture, RunId, ThreadId, ThreadState, Update};

/// How many updates of a thread are durable; the position after the last one.
pub type Seq = i64;

/// Log of threads: append-only, so that a step costs its own size.
pub trait ThreadLog: Send + Sync {
    /// Returns the thread's position and state; 0 and empty for a thread that has said nothing.
    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<(Seq, ThreadState), LogError>>;

    /// Appends a run's updates behind position `at` and returns the new position once they are durable.
    fn append<'a>(
        &'a self,
        thread: &'a ThreadId,
        run: &'a RunId,
        at: Seq,
        updates: &'a [Update],
    ) -> BoxFuture<'a, Result<Seq, LogError>>;
}

/// Why the log did not take or give updates.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another writer appended first: load again, or stop.
    #[error("the thread has moved on from position {at}")]
    Conflict {
        /// The position that was expected.
        at: Seq,
    },
    /// The store failed.
    #[error("the thread log failed: {0}")]
    Store(String),
}
