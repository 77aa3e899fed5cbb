//! Readers of runs: a run that is to stop with its reader stops when it has no reader any more.

use crate::GatewayState;
use pudu_client::{base::RunId, store::CancelAction};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// The readers of the runs that are followed.
#[derive(Default)]
pub(crate) struct RunReaders {
    runs: Mutex<HashMap<RunId, ReadRun>>,
    /// Rings when the last reader of a run goes away.
    left: Notify,
}

/// A run that is followed.
#[derive(Default)]
struct ReadRun {
    readers: usize,
    /// Whether a reader wants the run to stop with them.
    stops: bool,
}

impl RunReaders {
    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, ReadRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a run has no reader.
    pub(crate) async fn gone(&self, run: &RunId) {
        loop {
            let left = self.left.notified();
            if !self.lock().contains_key(run) {
                return;
            }
            left.await;
        }
    }

    /// Removes a reader, and returns whether the run is to stop.
    fn leave(&self, run: &RunId) -> bool {
        let mut runs = self.lock();
        let Some(read) = runs.get_mut(run) else { return false };
        read.readers -= 1;
        if read.readers > 0 {
            return false;
        }
        let stops = runs.remove(run).is_some_and(|read| read.stops);
        self.left.notify_waiters();
        stops
    }
}

/// A reader of a run, until it is dropped.
pub(crate) struct RunReader {
    gateway: GatewayState,
    run: RunId,
}

impl RunReader {
    /// Adds a reader, also of a run that is about to begin. With `stops` the run stops when its last reader goes away.
    pub(crate) fn join(gateway: &GatewayState, run: &RunId, stops: bool) -> Self {
        let mut runs = gateway.0.readers.lock();
        let read = runs.entry(run.clone()).or_default();
        read.readers += 1;
        read.stops |= stops;
        drop(runs);
        Self { gateway: gateway.clone(), run: run.clone() }
    }
}

impl Drop for RunReader {
    fn drop(&mut self) {
        if !self.gateway.0.readers.leave(&self.run) || self.gateway.0.stop.is_cancelled() {
            return;
        }
        let shared = self.gateway.0.shared.clone();
        let Some(live) = shared.client.live_run(&self.run).filter(|live| !live.replay.ended()) else {
            return;
        };
        shared.tasks.clone().spawn(async move {
            if let Err(error) = shared.client.stop(&live, CancelAction::Interrupt).await {
                tracing::warn!(run = %live.run, %error, "failed to stop run whose reader left");
            }
        });
    }
}
