//! Work that blocks, such as on files.

use tokio::task::{JoinError, spawn_blocking};

/// Runs work on a thread that may block.
///
/// # Errors
/// Those of the work, and the one that `broken` makes of a panic.
pub async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    broken: impl FnOnce(JoinError) -> E,
) -> Result<T, E> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(broken(error)))
}
