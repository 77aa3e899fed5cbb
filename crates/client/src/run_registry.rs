//! The runs that work, and for a while those that did, so that readers can join late.

use pudu_base::RunId;
use pudu_harness::Replay;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// A run that ended can be read for so long.
const AFTER: Duration = Duration::from_secs(60);

/// The replay rings of the process.
#[derive(Default)]
pub(crate) struct RunRegistry(Mutex<HashMap<RunId, RegisteredRun>>);

struct RegisteredRun {
    replay: Arc<Replay>,
    ended: Option<Instant>,
}

impl RunRegistry {
    pub(crate) fn open(&self, run: RunId, replay: Arc<Replay>) {
        self.lock().insert(run, RegisteredRun { replay, ended: None });
    }

    pub(crate) fn close(&self, run: &RunId) {
        if let Some(entry) = self.lock().get_mut(run) {
            entry.ended = Some(Instant::now());
        }
    }

    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<Replay>> {
        self.lock().get(run).map(|entry| entry.replay.clone())
    }

    /// Returns the runs that work or wait to, oldest first. Whoever has read a run's last event does not find
    /// it here any more.
    pub(crate) fn list(&self) -> Vec<(RunId, Arc<Replay>)> {
        let live = self.lock();
        let working = live.iter().filter(|(_, entry)| entry.ended.is_none() && !entry.replay.ended());
        let mut runs: Vec<_> = working.map(|(run, entry)| (run.clone(), entry.replay.clone())).collect();
        runs.sort_by(|(a, _), (b, _)| a.cmp(b));
        runs
    }

    pub(crate) fn trim(&self) {
        let mut live = self.lock();
        live.retain(|_, entry| entry.ended.is_none_or(|ended| ended.elapsed() < AFTER));
        live.shrink_to_fit();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, RegisteredRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{Outcome, RunEvent};

    #[tokio::test(start_paused = true)]
    async fn a_run_can_be_read_while_it_works_and_a_minute_longer() {
        let live = RunRegistry::default();
        live.open("a".into(), Arc::default());
        live.open("b".into(), Arc::default());
        live.open("c".into(), Arc::default());
        live.close(&"a".into());
        live.get(&"c".into())
            .unwrap()
            .publish(RunEvent::Ended { outcome: Outcome::Success, finish: pudu_base::Finish::Complete });
        assert_eq!(live.list().into_iter().map(|(run, _)| run).collect::<Vec<_>>(), ["b".into()]);
        tokio::time::advance(AFTER - Duration::from_secs(1)).await;
        live.trim();
        assert!(live.get(&"a".into()).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        live.trim();
        assert!(live.get(&"a".into()).is_none() && live.get(&"b".into()).is_some());
    }
}
