//! Work that blocks its thread, such as on files.

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

/// Runs work that can fail, as [`run`] does.
///
/// # Errors
/// Those of the work, and the one that `broken` makes of a panic.
pub async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    broken: impl FnOnce(JoinError) -> E,
) -> Result<T, E> {
    run(work).await.unwrap_or_else(|error| Err(broken(error)))
}
