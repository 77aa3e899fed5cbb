//! Work that blocks its thread.

use crate::simulation::Simulation;
use tokio::task::{JoinError, spawn_blocking};

/// Runs work on a thread of its own; in a simulation at once.
///
/// # Errors
/// When the work panics, or the runtime ends.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if Simulation::current().is_some() {
        return Ok(work());
    }
    spawn_blocking(work).await
}
