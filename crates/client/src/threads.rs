//! Threads in memory between runs, so that a turn costs its own size and not the thread's.

use crate::Client;
use hashlink::LinkedHashMap;
use pudu_base::{LogError, Seq, ThreadId, ThreadLog, ThreadState};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// A thread that nobody has used for so long is forgotten.
const IDLE: Duration = Duration::from_secs(120);
/// Maximum number of threads kept.
const MAX_CACHED_THREADS: usize = 1024;

impl Client {
    /// Names a thread that is new: its first run does not look for it in the store.
    #[must_use]
    pub fn new_thread(&self) -> ThreadId {
        let thread = ThreadId::fresh();
        self.0.threads.put(thread.clone(), 0, ThreadState::default());
        thread
    }
}

/// The threads of the process.
pub(crate) struct Threads {
    log: Arc<dyn ThreadLog>,
    /// The one that was put back last stands last.
    kept: Mutex<LinkedHashMap<ThreadId, CachedThread>>,
}

struct CachedThread {
    seq: Seq,
    state: ThreadState,
    used: Instant,
}

impl Threads {
    pub(crate) fn new(log: Arc<dyn ThreadLog>) -> Self {
        Self { log, kept: Mutex::default() }
    }

    pub(crate) fn log(&self) -> Arc<dyn ThreadLog> {
        self.log.clone()
    }

    /// Takes a thread out for a run. A second run that comes meanwhile reads the log, and is stopped by it
    /// when it writes.
    pub(crate) async fn take(&self, thread: &ThreadId) -> Result<(Seq, ThreadState), LogError> {
        let kept = self.lock().remove(thread);
        match kept {
            Some(kept) => Ok((kept.seq, kept.state)),
            None => self.log.load(thread).await,
        }
    }

    /// Puts a thread back after a run; the one that was put back first is forgotten, if there are too many.
    pub(crate) fn put(&self, thread: ThreadId, seq: Seq, state: ThreadState) {
        let mut kept = self.lock();
        kept.insert(thread, CachedThread { seq, state, used: Instant::now() });
        if kept.len() > MAX_CACHED_THREADS {
            kept.pop_front();
        }
    }

    /// Returns what a thread remembers without taking it out.
    pub(crate) async fn peek(&self, thread: &ThreadId) -> Result<ThreadState, LogError> {
        self.peek_at(thread).await.map(|(_, state)| state)
    }

    /// Likewise, with the position of its log.
    pub(crate) async fn peek_at(&self, thread: &ThreadId) -> Result<(Seq, ThreadState), LogError> {
        let kept = self.lock().get(thread).map(|kept| (kept.seq, kept.state.clone()));
        match kept {
            Some(kept) => Ok(kept),
            None => self.log.load(thread).await,
        }
    }

    /// Forgets a thread: it was deleted.
    pub(crate) fn forget(&self, thread: &ThreadId) {
        self.lock().remove(thread);
    }

    pub(crate) fn trim(&self) {
        let mut kept = self.lock();
        kept.retain(|_, kept| kept.used.elapsed() < IDLE);
        kept.shrink_to_fit();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LinkedHashMap<ThreadId, CachedThread>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
