//! Runs blocking work, such as file access.

use crate::simulation::Simulation;
use tokio::task::{JoinError, spawn_blocking};

/// Runs blocking work on a separate thread. In a simulation it runs inline.
///
/// # Errors
/// If the work panics, or the runtime shuts down.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if Simulation::current().is_some() {
        return Ok(work());
    }
    spawn_blocking(work).await
}

/// Like [`run`], for work that can fail.
///
/// # Errors
/// Those of the work. A panic becomes the error that `broken` returns.
pub async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    broken: impl FnOnce(JoinError) -> E,
) -> Result<T, E> {
    run(work).await.unwrap_or_else(|error| Err(broken(error)))
}
