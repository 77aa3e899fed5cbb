//! Retries store calls until they have an outcome. The store itself waits out failures of its database.

use pudu_store::StoreError;
use std::time::Duration;

/// Delay after an error that only a person can fix.
const MEND_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum wait for the store on behalf of a platform or an HTTP client that is waiting.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Retries a store call until it has an outcome, because continuing without one would break a guarantee. Returns `None`
/// on a conflict, which no retry resolves: another caller was first, and nothing is left to do. Never returns once the
/// store is closed: the next process finishes the work.
pub async fn retry_until_stored<T, F: Future<Output = Result<T, StoreError>>>(
    what: &str,
    call: impl Fn() -> F,
) -> Option<T> {
    loop {
        match call().await {
            Ok(value) => return Some(value),
            Err(StoreError::Conflict(reason)) => {
                tracing::warn!(reason, "{what}");
                return None;
            }
            Err(StoreError::Closed) => std::future::pending().await,
            Err(error) => tracing::error!(%error, "{what}"),
        }
        tokio::time::sleep(MEND_INTERVAL).await;
    }
}
