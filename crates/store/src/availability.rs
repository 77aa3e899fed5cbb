//! Availability of the database: waiting callers learn when it is given up, and the log says when it went and came
//! back.

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

/// The first pause between two tries.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay between two tries.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);
/// Maximum number of times that a late try doubles the time of the next one.
const MAX_DOUBLINGS: u32 = 7;
/// Interval at which a continuing outage is logged again.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60);

/// The state of the database, as far as calls have shown it.
#[derive(Default)]
pub(crate) struct Availability {
    /// Whether there is an outage: read by each call that works.
    away: AtomicBool,
    outage: Mutex<Option<Outage>>,
    newest_failure: Mutex<Option<Instant>>,
    closing: CancellationToken,
}

/// A continuing outage.
struct Outage {
    since: Instant,
    logged: Instant,
}

impl Availability {
    /// A call failed that is tried again.
    pub(crate) fn failed(&self, error: &StoreError) {
        self.lost_connection();
        let now = Instant::now();
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match outage.as_mut() {
            None => {
                *outage = Some(Outage { since: now, logged: now });
                self.away.store(true, Ordering::Relaxed);
                tracing::error!(%error, "failed to reach the store; what needs it waits");
            }
            Some(outage) if now.duration_since(outage.logged) >= REMINDER_INTERVAL => {
                outage.logged = now;
                tracing::error!(%error, away = ?now.duration_since(outage.since), "still waiting for the store");
            }
            Some(_) => {}
        }
    }

    /// The database answered a call.
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

    /// A connection leads nowhere any more: those that are as old are not used again.
    pub(crate) fn lost_connection(&self) {
        *self.newest_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns whether a connection of this age is older than the newest failure: then it probably leads
    /// nowhere.
    pub(crate) fn suspects(&self, age: Duration) -> bool {
        let failure = *self.newest_failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.is_some_and(|failure| failure.elapsed() <= age)
    }

    /// Ends the patience of all who wait.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits for the next try; `None` if there is none, because the store is closed.
    pub(crate) async fn sleep(&self, pause: Duration) -> Option<()> {
        self.closing.run_until_cancelled(tokio::time::sleep(pause)).await
    }
}

/// The pauses between tries of one call.
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

/// Limits the time of a call, if there is a limit: the time doubles after each late try.
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
