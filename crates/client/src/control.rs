//! Control of a run from outside.

use pudu_harness::Steering;
use std::sync::{Arc, atomic::AtomicBool};
use tokio_util::sync::CancellationToken;

/// How to reach a run while it works. Made by the caller, so that it can be stopped before it starts.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Takes messages for its next model call.
    pub steering: Steering,
    /// Stops it; what was said so far is kept.
    pub cancel: CancellationToken,
    /// Set before it is stopped if nothing of it is to be kept: its thread is as it was before, then.
    pub roll_back: Arc<AtomicBool>,
}
