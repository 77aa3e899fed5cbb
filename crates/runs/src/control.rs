//! Handles that steer or stop a run.

use pudu_harness::Steering;
use pudu_store::CancelAction;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio_util::sync::CancellationToken;

/// Handles to an active run. The caller creates them, so that a run can be stopped before it starts.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Receives messages for the run's next model call.
    pub steering: Steering,
    /// Stops the run; its output so far is kept.
    pub cancel: CancellationToken,
    /// Whether a stop rolls the run back, restoring its thread to its earlier state. Set before the stop.
    pub(crate) roll_back: Arc<AtomicBool>,
}

impl Control {
    /// Stops the run. Only the first call counts, as in the store.
    pub fn stop(&self, action: CancelAction) {
        if !self.cancel.is_cancelled() {
            self.roll_back.store(action == CancelAction::Rollback, Ordering::Relaxed);
        }
        self.cancel.cancel();
    }
}
