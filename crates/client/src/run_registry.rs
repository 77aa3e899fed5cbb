//! The runs that work, and for a while those that did, so that readers can join late.

use crate::Control;
use futures_util::FutureExt;
use pudu_base::{RunId, ThreadId};
use pudu_harness::Replay;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::{sync::OwnedMutexGuard, time::Instant};
use tokio_util::sync::CancellationToken;

/// A run that ended can be read for so long.
const AFTER: Duration = Duration::from_secs(60);

/// The runs of the process, and whose turn it is on each thread.
#[derive(Default)]
pub(crate) struct RunRegistry {
    runs: Mutex<HashMap<RunId, RegisteredRun>>,
    threads: Mutex<HashMap<ThreadId, Weak<tokio::sync::Mutex<()>>>>,
}

/// A run that works or waits to.
#[derive(Clone, Debug)]
pub struct LiveRun {
    /// Its id.
    pub run: RunId,
    /// The thread.
    pub thread: ThreadId,
    /// How to reach it.
    pub control: Control,
    /// Its events.
    pub replay: Arc<Replay>,
    /// Cancelled once it is over and its thread is another's.
    pub closed: CancellationToken,
}

struct RegisteredRun {
    live: LiveRun,
    ended: Option<Instant>,
}

/// The right to work on a thread.
pub(crate) type ThreadSlot = OwnedMutexGuard<()>;

impl RunRegistry {
    /// Adds a run; with `alone` only if no other run of its thread works or waits to.
    pub(crate) fn open(&self, live: LiveRun, alone: bool) -> Result<(), LiveRun> {
        let mut runs = self.lock();
        let other = runs.values().find(|entry| entry.ended.is_none() && entry.live.thread == live.thread);
        if let Some(other) = other.filter(|_| alone) {
            return Err(other.live.clone());
        }
        runs.insert(live.run.clone(), RegisteredRun { live, ended: None });
        Ok(())
    }

    /// Takes back a run that never began.
    pub(crate) fn withdraw(&self, run: &RunId) {
        if let Some(entry) = self.lock().remove(run) {
            entry.live.closed.cancel();
        }
    }

    pub(crate) fn close(&self, run: &RunId) {
        if let Some(entry) = self.lock().get_mut(run) {
            entry.ended = Some(Instant::now());
            entry.live.closed.cancel();
        }
    }

    /// Returns the turn of whoever asks on a thread: those before come first.
    pub(crate) fn queue(&self, thread: &ThreadId) -> impl Future<Output = ThreadSlot> + Send + use<> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = threads.get(thread).and_then(Weak::upgrade).unwrap_or_default();
        threads.insert(thread.clone(), Arc::downgrade(&lock));
        drop(threads);
        let mut turn = Box::pin(lock.lock_owned());
        // Who is asked once has a place in the queue.
        let ready = turn.as_mut().now_or_never();
        async move {
            match ready {
                Some(slot) => slot,
                None => turn.await,
            }
        }
    }

    /// Returns the runs of a thread that work or wait to, oldest first.
    pub(crate) fn of_thread(&self, thread: &ThreadId) -> Vec<LiveRun> {
        let runs = self.lock();
        let live = runs.values().filter(|entry| entry.ended.is_none() && entry.live.thread == *thread);
        let mut live: Vec<LiveRun> = live.map(|entry| entry.live.clone()).collect();
        live.sort_by(|a, b| a.run.cmp(&b.run));
        live
    }

    /// Returns how many runs work or wait to.
    pub(crate) fn len(&self) -> usize {
        self.lock().values().filter(|entry| entry.ended.is_none()).count()
    }

    /// Returns a run that works, waits to, or ended a minute ago at most.
    pub(crate) fn find(&self, run: &RunId) -> Option<LiveRun> {
        self.lock().get(run).map(|entry| entry.live.clone())
    }

    /// Returns the runs that work or wait to, oldest first. Whoever has read a run's last event does not find
    /// it here any more.
    pub(crate) fn list(&self) -> Vec<(RunId, Arc<Replay>)> {
        let live = self.lock();
        let working = live.iter().filter(|(_, entry)| entry.ended.is_none() && !entry.live.replay.ended());
        let mut runs: Vec<_> = working.map(|(run, entry)| (run.clone(), entry.live.replay.clone())).collect();
        runs.sort_by(|(a, _), (b, _)| a.cmp(b));
        runs
    }

    pub(crate) fn trim(&self) {
        let mut live = self.lock();
        live.retain(|_, entry| entry.ended.is_none_or(|ended| ended.elapsed() < AFTER));
        live.shrink_to_fit();
        drop(live);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|_, lock| lock.strong_count() > 0);
        threads.shrink_to_fit();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, RegisteredRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{Outcome, RunEvent};

    fn live(run: &str, thread: &str) -> LiveRun {
        let (control, replay, closed) = Default::default();
        LiveRun { run: run.into(), thread: thread.into(), control, replay, closed }
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
        assert!(runs.threads.lock().unwrap().is_empty());
    }

    #[test]
    fn who_wants_a_thread_alone_gets_it_only_if_nobody_is_there() {
        let runs = RunRegistry::default();
        runs.open(live("a", "t"), true).unwrap();
        assert_eq!(runs.open(live("b", "t"), true).unwrap_err().run, "a".into());
        runs.open(live("b", "t"), false).unwrap();
        runs.close(&"a".into());
        assert_eq!(runs.open(live("c", "t"), true).unwrap_err().run, "b".into());
        runs.withdraw(&"b".into());
        runs.open(live("c", "t"), true).unwrap();
        assert_eq!(
            runs.of_thread(&"t".into()).iter().map(|live| &live.run).collect::<Vec<_>>(),
            [&"c".into()]
        );
    }
}
