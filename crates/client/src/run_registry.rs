//! The active runs, and recently ended ones, so that readers can join late.

use crate::{Control, RunEnd};
use futures_util::FutureExt;
use pudu_base::{BoxFuture, RunId, Seq, ThreadId, ThreadState};
use pudu_harness::Replay;
use pudu_kit::locks::{KeyedLock, KeyedLocks};
use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time for which an ended run can be read.
const AFTER: Duration = Duration::from_secs(60);
/// Maximum number of ended runs kept for readers; readers of older ones use the log.
const MAX_ENDED: usize = 1024;

/// The runs of the process, and the queue of each thread.
#[derive(Default)]
pub(crate) struct RunRegistry {
    runs: Mutex<RegisteredRuns>,
    threads: KeyedLocks<ThreadId>,
}

/// A run that works or waits to.
#[derive(Clone, Debug)]
pub struct LiveRun {
    /// Its id.
    pub run: RunId,
    /// The thread.
    pub thread: ThreadId,
    /// When the run was accepted, in this process.
    pub since: Instant,
    /// Control of the run.
    pub control: Control,
    /// Its events.
    pub replay: Arc<Replay>,
    /// Cancelled once the run is over and its thread is released.
    pub closed: CancellationToken,
    /// Its last row in its thread's log from before a restart; 0 if it has none.
    pub before: Seq,
    /// Number of its first event after that row: no event from before the restart is sent again.
    pub first_event: u64,
    /// The thread as a client's run found it, and the position of its log then, as long as the run works.
    pub start: Arc<OnceLock<(Seq, ThreadState)>>,
    /// The name of its model, once that is known.
    pub model: Arc<OnceLock<String>>,
    /// The end of a client's run, before `closed` is cancelled.
    pub end: Arc<OnceLock<RunEnd>>,
}

#[derive(Default)]
struct RegisteredRuns {
    working: HashMap<RunId, LiveRun>,
    /// The ids of the working ones by thread, in the order in which they came.
    by_thread: HashMap<ThreadId, Vec<RunId>>,
    ended: HashMap<RunId, LiveRun>,
    /// The ended ones, oldest first.
    endings: VecDeque<(Instant, RunId)>,
}

impl RegisteredRuns {
    /// Removes a run from the working ones.
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

    /// Forgets ended runs that are too old, or too many.
    fn forget(&mut self) {
        let is_over = |(ended, _): &(Instant, RunId)| ended.elapsed() >= AFTER;
        while self.endings.len() > MAX_ENDED || self.endings.front().is_some_and(is_over) {
            let Some((_, run)) = self.endings.pop_front() else { return };
            self.ended.remove(&run);
        }
    }
}

/// The right to work on a thread.
pub(crate) type ThreadSlot = KeyedLock;

/// A place in the queue for a thread, of a run that is not ready to start yet. Dropping it lets the next run take the
/// place.
pub struct ThreadPlace(Mutex<BoxFuture<'static, ThreadSlot>>);

impl ThreadPlace {
    /// Returns the turn that belongs to the place.
    pub(crate) fn turn(self) -> BoxFuture<'static, ThreadSlot> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunRegistry {
    /// Adds a run; with `alone` only if no other run of its thread works or waits to, or else returns that run's id.
    pub(crate) fn open(&self, live: LiveRun, alone: bool) -> Result<(), RunId> {
        let mut runs = self.lock();
        let RegisteredRuns { working, by_thread, .. } = &mut *runs;
        let of_thread = by_thread.entry(live.thread.clone()).or_default();
        if let Some(other) = of_thread.first().filter(|other| alone && working.contains_key(*other)) {
            return Err(other.clone());
        }
        of_thread.push(live.run.clone());
        working.insert(live.run.clone(), live);
        Ok(())
    }

    /// Takes back a run that never began.
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

    /// Returns the caller's turn on a thread: earlier callers come first.
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

    /// Returns a place behind those before.
    pub(crate) fn place(&self, thread: &ThreadId) -> ThreadPlace {
        ThreadPlace(Mutex::new(Box::pin(self.queue(thread))))
    }

    /// Returns the runs of a thread that work or wait to, oldest first.
    pub(crate) fn of_thread(&self, thread: &ThreadId) -> Vec<LiveRun> {
        let runs = self.lock();
        let of_thread = runs.by_thread.get(thread).into_iter().flatten();
        of_thread.filter_map(|run| runs.working.get(run).cloned()).collect()
    }

    /// Returns how many runs work or wait to.
    /// Returns the threads on which runs work or wait to.
    pub(crate) fn threads(&self) -> Vec<ThreadId> {
        self.lock().by_thread.keys().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().working.len()
    }

    /// Returns a run that works, waits to, or ended a minute ago at most.
    pub(crate) fn find(&self, run: &RunId) -> Option<LiveRun> {
        let runs = self.lock();
        runs.working.get(run).or_else(|| runs.ended.get(run)).cloned()
    }

    /// Returns the runs that work or wait to, oldest first. A reader of a run's last event no longer finds the run
    /// here.
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
        crate::runs::live(&crate::RunTask::new(thread.into(), run.into()), Control::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_can_be_read_while_it_works_and_a_minute_longer() {
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
    fn only_so_many_ended_runs_are_kept() {
        let runs = RunRegistry::default();
        for n in 0..=MAX_ENDED {
            let run = n.to_string();
            runs.open(live(&run, "t"), false).unwrap();
            runs.close(&run.as_str().into());
        }
        assert!(runs.find(&"0".into()).is_none() && runs.find(&"1".into()).is_some());
    }

    #[tokio::test]
    async fn a_thread_is_worked_on_by_one_after_the_other_in_the_order_of_asking() {
        let runs = RunRegistry::default();
        let (one, two, three) = (runs.queue(&"t".into()), runs.queue(&"t".into()), runs.queue(&"t".into()));
        let mut three = Box::pin(three);
        let slot = one.await;
        assert!(three.as_mut().now_or_never().is_none());
        let mut two = Box::pin(two);
        assert!(two.as_mut().now_or_never().is_none());
        runs.queue(&"another".into()).now_or_never().unwrap();
        drop(slot);
        assert!(three.as_mut().now_or_never().is_none(), "the second comes first");
        drop(two.await);
        drop(three.await);
        runs.trim();
        assert_eq!(runs.threads.forget_unused(), 0);
    }

    #[test]
    fn who_wants_a_thread_alone_gets_it_only_if_nobody_is_there() {
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
