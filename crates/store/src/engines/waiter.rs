//! Blocking threads in which jobs wait for a database server.

use crate::{Result, StoreError};
use tokio::{runtime::Handle, task::JoinError};
use tokio_util::sync::CancellationToken;

/// Lets a blocking thread wait for the answers of a server.
pub(crate) struct Waiter {
    runtime: Handle,
    given_up: CancellationToken,
}

impl Waiter {
    /// Waits until a call is answered or cancelled.
    pub(crate) fn wait<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let given_up = || Err(StoreError::Unavailable("the call was abandoned".to_owned()));
        self.runtime.block_on(self.given_up.run_until_cancelled(call)).unwrap_or_else(given_up)
    }
}

/// Runs work in a blocking thread. The current statement is cancelled when `given_up` is cancelled or this future is
/// dropped.
pub(crate) async fn on_thread<T: Send + 'static>(
    given_up: CancellationToken,
    work: impl FnOnce(&Waiter) -> T + Send + 'static,
) -> T {
    let _guard = given_up.clone().drop_guard();
    let waiter = Waiter { runtime: Handle::current(), given_up };
    match tokio::task::spawn_blocking(move || work(&waiter)).await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is shutting down.
        Err(Err(_)) => std::future::pending().await,
    }
}
