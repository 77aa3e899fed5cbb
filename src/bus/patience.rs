//! Asking the store until it answers: going on without it would break a promise.

use pudu_client::store::StoreError;
use std::time::Duration;

/// The first wait; each next is twice as long.
const FIRST: Duration = Duration::from_millis(500);
/// No wait is longer.
const LONGEST: Duration = Duration::from_secs(30);

/// Repeats a call until the store takes it. `None` when it never will, because somebody was first: nothing
/// is left to do.
pub(crate) async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(
    what: &str,
    call: impl Fn() -> F,
) -> Option<T> {
    let mut wait = FIRST;
    loop {
        match call().await {
            Ok(value) => return Some(value),
            Err(StoreError::Conflict(reason)) => {
                tracing::warn!(reason, "{what}");
                return None;
            }
            Err(error) => tracing::error!(%error, "{what}"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST);
    }
}
