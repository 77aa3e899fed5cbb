//! Availability of the database: retry delays for waiting callers, and log entries for the start and end of an outage.

use crate::StoreError;
use backon::BackoffBuilder;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// First delay between two tries.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay between two tries.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);
/// Maximum number of times that the time limit of a try is doubled.
const MAX_DOUBLINGS: u32 = 7;
/// Interval at which a continuing outage is logged again.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60);

/// The state of the database, as inferred from the outcomes of calls.
#[derive(Default)]
pub(crate) struct Availability {
    /// Whether there is an outage. Each successful call reads it without a lock.
    away: AtomicBool,
    outage: Mutex<Option<Outage>>,
    newest_failure: Mutex<Option<Instant>>,
    closing: CancellationToken,
}

/// An outage in progress.
struct Outage {
    since: Instant,
    logged: Instant,
}

impl Availability {
    /// Records a failed call that will be retried.
    pub(crate) fn failed(&self, error: &StoreError) {
        self.lost_connection();
        let now = Instant::now();
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match outage.as_mut() {
            None => {
                *outage = Some(Outage { since: now, logged: now });
                self.away.store(true, Ordering::Relaxed);
                tracing::error!(%error, "failed to reach the store; callers wait for it");
            }
            Some(outage) if now.duration_since(outage.logged) >= REMINDER_INTERVAL => {
                outage.logged = now;
                tracing::error!(%error, away = ?now.duration_since(outage.since), "still waiting for the store");
            }
            Some(_) => {}
        }
    }

    /// Records that the database answered a call, which ends an outage.
    pub(crate) fn answered(&self) {
        if !self.away.load(Ordering::Relaxed) {
            return;
        }
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outage) = outage.take() {
            self.away.store(false, Ordering::Relaxed);
            tracing::info!(away = ?outage.since.elapsed(), "reached the store again");
        }
    }

    /// Records a lost connection. Connections opened before now are not reused.
    pub(crate) fn lost_connection(&self) {
        *self.newest_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns whether a connection of this age was opened before the newest failure and is probably dead.
    pub(crate) fn suspects(&self, age: Duration) -> bool {
        let failure = *self.newest_failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.is_some_and(|failure| failure.elapsed() <= age)
    }

    /// Ends the waits of all callers.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until the next try. Returns `None` if the store is closed and there will be no next try.
    pub(crate) async fn sleep(&self, pause: Duration) -> Option<()> {
        self.closing.run_until_cancelled(tokio::time::sleep(pause)).await
    }
}

/// The delays between the tries of one call.
pub(crate) struct RetryDelays {
    pauses: backon::ExponentialBackoff,
}

impl Default for RetryDelays {
    fn default() -> Self {
        let pauses = backon::ExponentialBuilder::new()
            .with_min_delay(FIRST_RETRY_DELAY)
            .with_max_delay(MAX_RETRY_DELAY)
            .with_jitter()
            .without_max_times()
            .build();
        Self { pauses }
    }
}

impl RetryDelays {
    pub(crate) fn next(&mut self) -> Duration {
        self.pauses.next().unwrap_or(MAX_RETRY_DELAY)
    }
}

/// Runs a call within a time limit, if there is one. The limit doubles with each timeout counted in `late`.
pub(crate) async fn in_time<T, E: From<StoreError>>(
    timeout: Option<Duration>,
    late: &mut u32,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let Some(timeout) = timeout else { return call.await };
    let timeout = timeout * 2u32.pow((*late).min(MAX_DOUBLINGS));
    let outcome = tokio::time::timeout(timeout, call).await;
    *late += u32::from(outcome.is_err());
    outcome.unwrap_or_else(|_| Err(StoreError::late(timeout).into()))
}
