//! Reads the events of one run.

use crate::{RunManager, readers::RunReaders};
use pudu_base::RunId;
use pudu_store::CancelAction;
use tokio_util::sync::CancellationToken;

/// A reader of a run. It disconnects on drop.
pub struct RunReader {
    runs: RunManager,
    run: RunId,
    readers: RunReaders,
}

impl RunManager {
    /// Adds a reader of a run, which may have ended. See [`RunManager::join_readers`].
    #[must_use]
    pub fn read_run(&self, run: &RunId, stops_unless: Option<CancellationToken>) -> RunReader {
        let readers = self.live_run(run).map(|live| live.readers).unwrap_or_default();
        self.join_readers(&readers, run, stops_unless)
    }

    /// Adds a reader of a run, which may not have begun yet. With `stops_unless`, the run stops when its last reader
    /// disconnects, unless that token is cancelled: readers also disconnect when their server stops.
    #[must_use]
    pub fn join_readers(
        &self,
        readers: &RunReaders,
        run: &RunId,
        stops_unless: Option<CancellationToken>,
    ) -> RunReader {
        readers.enter(stops_unless);
        RunReader { runs: self.clone(), run: run.clone(), readers: readers.clone() }
    }
}

impl Drop for RunReader {
    fn drop(&mut self) {
        if !self.readers.leave() {
            return;
        }
        let Some(live) = self.runs.live_run(&self.run).filter(|live| !live.replay.ended()) else { return };
        let runs = self.runs.clone();
        self.runs.0.agent.tasks().spawn(async move {
            if let Err(error) = runs.stop(&live, CancelAction::Interrupt).await {
                tracing::warn!(run = %live.run, %error, "failed to stop run whose reader left");
            }
        });
    }
}
