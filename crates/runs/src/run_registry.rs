//! The active runs, and recently ended ones for readers that join late.

use crate::{Control, RunEnd, readers::RunReaders};
use futures_util::FutureExt;
use pudu_base::{BoxFuture, RunId, Seq, ThreadId, ThreadState};
use pudu_harness::Replay;
use pudu_kit::locks::{KeyedLock, KeyedLocks};
use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

/// How long readers can still join an ended run.
const AFTER: Duration = Duration::from_secs(60);
/// Maximum number of ended runs kept for readers; readers of older ones use the log.
const MAX_ENDED: usize = 1024;

/// The runs of the process, and the queue of each thread.
#[derive(Default)]
pub(crate) struct RunRegistry {
    runs: Mutex<RegisteredRuns>,
    threads: KeyedLocks<ThreadId>,
}

/// An active or waiting run.
#[derive(Clone, Debug)]
pub struct LiveRun {
    /// Its id.
    pub run: RunId,
    /// The thread.
    pub thread: ThreadId,
    /// When the run was accepted, in this process.
    pub since: Instant,
    /// Whether its input sets a goal.
    pub sets_goal: bool,
    /// Control of the run.
    pub control: Control,
    /// Its events.
    pub replay: Arc<Replay>,
    /// Cancelled once the run has ended and its thread is released.
    pub closed: CancellationToken,
    /// Position in the thread's log of its last row from before a restart; 0 if it has none.
    pub before: Seq,
    /// Number of its first event after that row. Events from before the restart are not sent again.
    pub first_event: u64,
    /// The thread's state and log position at the start of a client's run, while the run is active.
    pub start: Arc<OnceLock<(Seq, ThreadState)>>,
    /// The name of its model, once known.
    pub model: Arc<OnceLock<String>>,
    /// The end of a client's run, set before `closed` is cancelled.
    pub end: Arc<OnceLock<RunEnd>>,
    /// Its readers.
    pub readers: RunReaders,
}

#[derive(Default)]
struct RegisteredRuns {
    working: HashMap<RunId, LiveRun>,
    /// Ids of the active and waiting runs by thread, in order of arrival.
    by_thread: HashMap<ThreadId, Vec<RunId>>,
    ended: HashMap<RunId, LiveRun>,
    /// The ended runs, oldest first.
    endings: VecDeque<(Instant, RunId)>,
    /// Notified when a run is added to a thread.
    watched: HashMap<ThreadId, Weak<Notify>>,
}

impl RegisteredRuns {
    /// Removes a run from the active ones.
    fn remove(&mut self, run: &RunId) -> Option<LiveRun> {
        let live = self.working.remove(run)?;
        if let Entry::Occupied(mut of_thread) = self.by_thread.entry(live.thread.clone()) {
            of_thread.get_mut().retain(|other| other != run);
            if of_thread.get().is_empty() {
                of_thread.remove();
            }
        }
        Some(live)
    }

    /// Drops ended runs that are too old or too many.
    fn forget(&mut self) {
        let is_over = |(ended, _): &(Instant, RunId)| ended.elapsed() >= AFTER;
        while self.endings.len() > MAX_ENDED || self.endings.front().is_some_and(is_over) {
            let Some((_, run)) = self.endings.pop_front() else { return };
            self.ended.remove(&run);
        }
    }
}

/// The exclusive right to execute on a thread.
pub(crate) type ThreadSlot = KeyedLock;

/// A place in a thread's queue for a run that is not ready to start yet. Dropping it lets the next run move up.
pub struct ThreadPlace(Mutex<BoxFuture<'static, ThreadSlot>>);

impl ThreadPlace {
    /// Returns the future that resolves when it is this place's turn.
    pub(crate) fn turn(self) -> BoxFuture<'static, ThreadSlot> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunRegistry {
    /// Adds a run. With `alone`, fails with the id of another active or waiting run of its thread, if there is one.
    pub(crate) fn open(&self, live: LiveRun, alone: bool) -> Result<(), RunId> {
        let mut runs = self.lock();
        let RegisteredRuns { working, by_thread, watched, .. } = &mut *runs;
        let of_thread = by_thread.entry(live.thread.clone()).or_default();
        if let Some(other) = of_thread.first().filter(|other| alone && working.contains_key(*other)) {
            return Err(other.clone());
        }
        of_thread.push(live.run.clone());
        if let Some(watchers) = watched.get(&live.thread).and_then(Weak::upgrade) {
            watchers.notify_waiters();
        }
        working.insert(live.run.clone(), live);
        Ok(())
    }

    /// Returns the notification about runs that are added to a thread.
    pub(crate) fn watch(&self, thread: &ThreadId) -> Arc<Notify> {
        let mut runs = self.lock();
        if let Some(known) = runs.watched.get(thread).and_then(Weak::upgrade) {
            return known;
        }
        let added = Arc::new(Notify::new());
        runs.watched.insert(thread.clone(), Arc::downgrade(&added));
        added
    }

    /// Removes a run that never began.
    pub(crate) fn withdraw(&self, run: &RunId) {
        if let Some(live) = self.lock().remove(run) {
            live.closed.cancel();
        }
    }

    pub(crate) fn close(&self, run: &RunId) {
        let mut runs = self.lock();
        let Some(live) = runs.remove(run) else { return };
        runs.endings.push_back((Instant::now(), run.clone()));
        runs.ended.insert(run.clone(), LiveRun { start: Arc::default(), ..live.clone() });
        runs.forget();
        drop(runs);
        live.closed.cancel();
    }

    /// Queues the caller for a thread. The returned future resolves when the caller's turn comes; earlier callers come
    /// first.
    pub(crate) fn queue(&self, thread: &ThreadId) -> impl Future<Output = ThreadSlot> + Send + use<> {
        let mut turn = Box::pin(self.threads.mutex(thread).lock_owned());
        // Polling once reserves a place in the queue.
        let ready = turn.as_mut().now_or_never();
        async move {
            match ready {
                Some(slot) => slot,
                None => turn.await,
            }
        }
    }

    /// Reserves a place at the end of a thread's queue.
    pub(crate) fn place(&self, thread: &ThreadId) -> ThreadPlace {
        ThreadPlace(Mutex::new(Box::pin(self.queue(thread))))
    }

    /// Returns the active and waiting runs of a thread, oldest first.
    pub(crate) fn of_thread(&self, thread: &ThreadId) -> Vec<LiveRun> {
        let runs = self.lock();
        let of_thread = runs.by_thread.get(thread).into_iter().flatten();
        of_thread.filter_map(|run| runs.working.get(run).cloned()).collect()
    }

    /// Returns the threads with active or waiting runs.
    pub(crate) fn threads(&self) -> Vec<ThreadId> {
        self.lock().by_thread.keys().cloned().collect()
    }

    /// Returns the number of active and waiting runs.
    pub(crate) fn len(&self) -> usize {
        self.lock().working.len()
    }

    /// Finds a run that is active, waiting, or ended within the last minute.
    pub(crate) fn find(&self, run: &RunId) -> Option<LiveRun> {
        let runs = self.lock();
        runs.working.get(run).or_else(|| runs.ended.get(run)).cloned()
    }

    /// Returns the active and waiting runs, oldest first, except runs whose last event was published.
    pub(crate) fn list(&self) -> Vec<(RunId, Arc<Replay>)> {
        let runs = self.lock();
        let working = runs.working.values().filter(|live| !live.replay.ended());
        let mut listed: Vec<_> = working.map(|live| (live.run.clone(), live.replay.clone())).collect();
        drop(runs);
        listed.sort_by(|(a, _), (b, _)| a.cmp(b));
        listed
    }

    pub(crate) fn trim(&self) {
        let mut runs = self.lock();
        runs.forget();
        runs.watched.retain(|_, watchers| watchers.strong_count() > 0);
        runs.watched.shrink_to_fit();
        runs.working.shrink_to_fit();
        runs.by_thread.shrink_to_fit();
        runs.ended.shrink_to_fit();
        runs.endings.shrink_to_fit();
        drop(runs);
        self.threads.forget_unused();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RegisteredRuns> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{Outcome, RunEvent};

    fn live(run: &str, thread: &str) -> LiveRun {
        crate::runs::live(&pudu_agent::RunTask::new(thread.into(), run.into()), Control::default())
    }

    #[tokio::test(start_paused = true)]
    async fn runs_can_be_read_until_a_minute_after_their_end() {
        let runs = RunRegistry::default();
        for run in ["a", "b", "c"] {
            runs.open(live(run, run), true).unwrap();
        }
        runs.close(&"a".into());
        let ended = RunEvent::Ended { outcome: Outcome::Success, finish: pudu_base::Finish::Complete };
        runs.find(&"c".into()).unwrap().replay.publish(ended);
        assert_eq!(runs.list().into_iter().map(|(run, _)| run).collect::<Vec<_>>(), ["b".into()]);
        tokio::time::advance(AFTER - Duration::from_secs(1)).await;
        runs.trim();
        assert!(runs.find(&"a".into()).is_some_and(|run| run.closed.is_cancelled()));
        tokio::time::advance(Duration::from_secs(1)).await;
        runs.trim();
        assert!(runs.find(&"a".into()).is_none() && runs.find(&"b".into()).is_some());
    }

    #[test]
    fn number_of_kept_ended_runs_is_limited() {
        let runs = RunRegistry::default();
        for n in 0..=MAX_ENDED {
            let run = n.to_string();
            runs.open(live(&run, "t"), false).unwrap();
            runs.close(&run.as_str().into());
        }
        assert!(runs.find(&"0".into()).is_none() && runs.find(&"1".into()).is_some());
    }

    #[tokio::test]
    async fn runs_of_a_thread_execute_one_by_one_in_order_of_arrival() {
        let runs = RunRegistry::default();
        let (one, two, three) = (runs.queue(&"t".into()), runs.queue(&"t".into()), runs.queue(&"t".into()));
        let mut three = Box::pin(three);
        let slot = one.await;
        assert!(three.as_mut().now_or_never().is_none());
        let mut two = Box::pin(two);
        assert!(two.as_mut().now_or_never().is_none());
        runs.queue(&"another".into()).now_or_never().unwrap();
        drop(slot);
        assert!(three.as_mut().now_or_never().is_none(), "the second run is first");
        drop(two.await);
        drop(three.await);
        runs.trim();
        assert_eq!(runs.threads.forget_unused(), 0);
    }

    #[test]
    fn exclusive_run_is_refused_while_the_thread_has_another_run() {
        let runs = RunRegistry::default();
        runs.open(live("a", "t"), true).unwrap();
        assert_eq!(runs.open(live("b", "t"), true).unwrap_err(), "a".into());
        runs.open(live("b", "t"), false).unwrap();
        runs.close(&"a".into());
        assert_eq!(runs.open(live("c", "t"), true).unwrap_err(), "b".into());
        runs.withdraw(&"b".into());
        runs.open(live("c", "t"), true).unwrap();
        assert_eq!(
            runs.of_thread(&"t".into()).iter().map(|live| &live.run).collect::<Vec<_>>(),
            [&"c".into()]
        );
    }
}
