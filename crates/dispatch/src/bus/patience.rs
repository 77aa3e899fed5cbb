//! Retries of store calls until there is an answer. The store itself waits out its database's failures.

use pudu_client::store::StoreError;
use std::time::Duration;

/// The pause after an error that a person has to fix.
const MEND_INTERVAL: Duration = Duration::from_secs(30);

/// Callers with a client that waits, on a platform or over HTTP, wait no longer for the store.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Retries a store call until it has an answer: continuing without one would break a promise. Returns `None` on a
/// conflict, which no retry resolves: another caller was first, and nothing is left to do. Never returns once the store
/// is closed: the next process does the rest.
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
