//! Admission of runs: limits how many execute at once.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The permit of one run to execute, released on drop.
pub struct Admission {
    _permit: OwnedSemaphorePermit,
}

/// Admission control: one permit per run.
pub(crate) struct Admissions(Arc<Semaphore>);

impl Admissions {
    pub(crate) fn new(concurrency: usize) -> Self {
        Self(Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits for a permit. Returns `None` if `cancel` is cancelled first.
    pub(crate) async fn admit(&self, cancel: &CancellationToken) -> Option<Admission> {
        let permit = cancel.run_until_cancelled(self.0.clone().acquire_owned()).await?;
        Some(Admission { _permit: permit.ok()? })
    }
}
