//! Control of a run from outside.

use pudu_harness::Steering;
use pudu_store::CancelAction;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio_util::sync::CancellationToken;

/// How to reach a run while it works. Made by the caller, so that it can be stopped before it starts.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Takes messages for its next model call.
    pub steering: Steering,
    /// Stops it; what was said so far is kept.
    pub cancel: CancellationToken,
    /// Set before it is stopped if nothing of it is to be kept: its thread is as it was before, then.
    pub(crate) roll_back: Arc<AtomicBool>,
}

impl Control {
    /// Has the run stop. The first word counts, as in the store.
    pub fn stop(&self, action: CancelAction) {
        if !self.cancel.is_cancelled() {
            self.roll_back.store(action == CancelAction::Rollback, Ordering::Relaxed);
        }
        self.cancel.cancel();
    }
}
