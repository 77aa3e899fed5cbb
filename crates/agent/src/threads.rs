//! Caches threads between runs, so that the cost of a turn depends on its own size and not on the thread's.

use crate::Agent;
use hashlink::LinkedHashMap;
use pudu_base::{LogError, Seq, ThreadId, ThreadLog, ThreadState};
use pudu_harness::{message_bytes, value_bytes};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// How long a thread may be idle before it is dropped.
const IDLE: Duration = Duration::from_secs(120);
/// Maximum number of cached threads.
const MAX_CACHED_THREADS: usize = 1024;
/// Maximum size of the messages of all cached threads, in bytes. A larger thread is read from the log each time.
const MAX_CACHED_BYTES: u64 = 128 * 1024 * 1024;

impl Agent {
    /// Creates an empty cached thread and returns its id, so that its first run does not read the store.
    #[must_use]
    pub fn new_thread(&self) -> ThreadId {
        let thread = ThreadId::fresh();
        self.0.threads.put(thread.clone(), 0, ThreadState::default());
        thread
    }
}

/// The process's cache of threads.
pub struct Threads {
    log: Arc<dyn ThreadLog>,
    kept: Mutex<CachedThreads>,
}

/// Threads without an active run, and their total size.
#[derive(Default)]
struct CachedThreads {
    /// The threads, in the order in which they were put back.
    threads: LinkedHashMap<ThreadId, CachedThread>,
    bytes: u64,
}

impl CachedThreads {
    fn insert(&mut self, thread: ThreadId, kept: CachedThread) {
        self.remove(&thread);
        self.bytes += kept.bytes;
        self.threads.insert(thread, kept);
        while self.threads.len() > MAX_CACHED_THREADS || self.bytes > MAX_CACHED_BYTES {
            let Some((_, oldest)) = self.threads.pop_front() else { return };
            self.bytes -= oldest.bytes;
        }
    }

    fn remove(&mut self, thread: &ThreadId) -> Option<CachedThread> {
        let cached = self.threads.remove(thread)?;
        self.bytes -= cached.bytes;
        Some(cached)
    }

    /// Drops idle threads.
    fn trim(&mut self) {
        while self.threads.front().is_some_and(|(_, kept)| kept.used.elapsed() >= IDLE) {
            if let Some((_, kept)) = self.threads.pop_front() {
                self.bytes -= kept.bytes;
            }
        }
        self.threads.shrink_to_fit();
    }
}

struct CachedThread {
    seq: Seq,
    state: ThreadState,
    /// Size of its messages.
    bytes: u64,
    used: Instant,
}

/// Returns the approximate size of a thread's messages, in bytes.
fn size(state: &ThreadState) -> u64 {
    let messages: u64 = state.messages.values().map(|message| message_bytes(message)).sum();
    let fields: usize = state.client_fields.values().map(|fields| value_bytes(fields)).sum();
    messages + fields as u64
}

impl Threads {
    pub(crate) fn new(log: Arc<dyn ThreadLog>) -> Self {
        Self { log, kept: Mutex::default() }
    }

    /// Returns the log of all threads.
    pub fn log(&self) -> Arc<dyn ThreadLog> {
        self.log.clone()
    }

    /// Takes a thread out of the cache for a run. A concurrent second run would read the log, which refuses its writes.
    pub async fn take(&self, thread: &ThreadId) -> Result<(Seq, ThreadState), LogError> {
        let cached = self.lock().remove(thread);
        match cached {
            Some(cached) => Ok((cached.seq, cached.state)),
            None => self.log.load(thread).await,
        }
    }

    /// Puts a thread back after a run. If there are too many, or their total size is too large, the ones put back first
    /// are dropped.
    pub fn put(&self, thread: ThreadId, seq: Seq, state: ThreadState) {
        let cached = CachedThread { seq, bytes: size(&state), state, used: Instant::now() };
        self.lock().insert(thread, cached);
    }

    /// Returns the state of a thread without taking it out of the cache.
    pub(crate) async fn peek(&self, thread: &ThreadId) -> Result<ThreadState, LogError> {
        self.peek_at(thread).await.map(|(_, state)| state)
    }

    /// Returns the state of a thread and the position of its log.
    pub(crate) async fn peek_at(&self, thread: &ThreadId) -> Result<(Seq, ThreadState), LogError> {
        let cached = self.lock().threads.get(thread).map(|cached| (cached.seq, cached.state.clone()));
        match cached {
            Some(cached) => Ok(cached),
            None => self.log.load(thread).await,
        }
    }

    /// Drops a deleted thread.
    pub fn forget(&self, thread: &ThreadId) {
        self.lock().remove(thread);
    }

    /// Drops idle threads.
    pub fn trim(&self) {
        self.lock().trim();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CachedThreads> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{Human, Message, MessageId};

    fn thread(text: &str) -> ThreadState {
        let mut state = ThreadState::default();
        state.messages.insert(MessageId::from("m"), Arc::new(Message::Human(Human::new("m", text))));
        state
    }

    fn kept(bytes: u64) -> CachedThread {
        CachedThread { seq: 1, state: ThreadState::default(), bytes, used: Instant::now() }
    }

    #[tokio::test(start_paused = true)]
    async fn threads_are_cached_up_to_a_number_a_size_and_a_time() {
        assert!((1_000_000..1_001_000).contains(&size(&thread(&"x".repeat(1_000_000)))));
        let mut cache = CachedThreads::default();
        let ids = |cache: &CachedThreads| {
            cache.threads.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        for (id, bytes) in [("a", 60), ("b", 60), ("c", 60)] {
            cache.insert(id.into(), kept(bytes * 1024 * 1024));
        }
        assert_eq!(ids(&cache), "b c", "the oldest thread is dropped");
        cache.insert("b".into(), kept(1));
        assert_eq!(
            (ids(&cache).as_str(), cache.bytes),
            ("c b", 60 * 1024 * 1024 + 1),
            "the size of the newer state counts"
        );
        cache.insert("d".into(), kept(MAX_CACHED_BYTES + 1));
        assert_eq!((ids(&cache).as_str(), cache.bytes), ("", 0), "a thread that is too large is not cached");
        (0..=MAX_CACHED_THREADS).for_each(|at| cache.insert(at.to_string().as_str().into(), kept(1)));
        assert_eq!((cache.threads.len(), cache.bytes), (MAX_CACHED_THREADS, MAX_CACHED_THREADS as u64));
        tokio::time::advance(IDLE).await;
        cache.insert("e".into(), kept(7));
        cache.trim();
        assert_eq!((ids(&cache).as_str(), cache.bytes), ("e", 7));
    }
}
