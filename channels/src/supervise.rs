//! Keeps one bot connected: reconnects with growing, jittered delays, reports its health, and gives up only on a
//! failure that the operator has to fix.

use crate::{ChannelError, HealthCell, HealthState, socket::SocketError};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// First delay before reconnecting.
const MIN_RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay between attempts, unless the platform asks for a longer one. After a recovery, users wait no longer
/// than this plus the time to connect.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(6);
/// A connection counts as good if it lasts this long or receives an event. The delays then start over.
const GOOD: Duration = Duration::from_secs(60);

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// Reconnect at once: the platform asks for it, or a new connection has taken over.
    Renew,
    /// The connection broke or could not be established, for this reason, without secrets.
    Lost(String),
    /// The platform asks to wait for this duration.
    Later(String, Duration),
    /// Permanent failure.
    Fatal(ChannelError),
}

impl From<SocketError> for ConnectionEnd {
    fn from(error: SocketError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Reconnects until `stop`. `connect` runs as long as its connection, calls [`HealthCell::ready`] once events flow, and
/// ends on its own when `stop` is cancelled.
pub(crate) async fn supervise<F>(
    health: &HealthCell,
    stop: &CancellationToken,
    mut connect: impl FnMut() -> F,
) -> Result<(), ChannelError>
where
    F: Future<Output = ConnectionEnd>,
{
    let mut pauses = ReconnectDelays::default();
    let result = loop {
        let (began, before) = (Instant::now(), health.get().last_event);
        let ended = connect().await;
        if stop.is_cancelled() {
            break Ok(());
        }
        if began.elapsed() >= GOOD || health.get().last_event > before {
            pauses = ReconnectDelays::default();
        }
        let pause = match ended {
            ConnectionEnd::Renew => pauses.after_renewal(),
            ConnectionEnd::Lost(why) => {
                let pause = pauses.next();
                tracing::warn!(why, ?pause, "reconnecting after lost connection");
                health.failed(HealthState::Degraded, why);
                pause
            }
            ConnectionEnd::Later(why, wait) => {
                tracing::warn!(why, ?wait, "reconnecting later: the platform asks to wait");
                health.failed(HealthState::Degraded, why);
                pauses.next().max(wait)
            }
            ConnectionEnd::Fatal(error) => break Err(error),
        };
        if stop.run_until_cancelled(sleep(pause)).await.is_none() {
            break Ok(());
        }
    };
    match &result {
        Ok(()) => health.stopped(),
        Err(error @ ChannelError::Auth(_)) => health.failed(HealthState::AuthFailed, error.to_string()),
        Err(error) => health.failed(HealthState::Stopped, error.to_string()),
    }
    result
}

/// Delays that grow from one attempt to the next.
#[derive(Debug, Default)]
struct ReconnectDelays {
    tries: u32,
    renewals: u32,
}

impl ReconnectDelays {
    /// Returns a random delay between half and all of the current one, so that many lost connections are not reopened
    /// simultaneously.
    fn next(&mut self) -> Duration {
        let full_delay = MIN_RECONNECT_DELAY.saturating_mul(1 << self.tries.min(10)).min(MAX_RECONNECT_DELAY);
        self.tries += 1;
        full_delay.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// Returns the delay after a renewal: none for the first, growing ones for frequent renewals.
    fn after_renewal(&mut self) -> Duration {
        self.renewals += 1;
        if self.renewals > 1 { self.next() } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Runs connections that end like this, one after another. Returns the start times of the attempts, the result and
    /// the health.
    async fn tried(ends: Vec<(u64, ConnectionEnd)>) -> (Vec<u64>, Result<(), ChannelError>, HealthState) {
        let (health, stop) = (HealthCell::default(), CancellationToken::new());
        let (start, ends, times) = (Instant::now(), Mutex::new(ends.into_iter()), Mutex::new(Vec::new()));
        let connect = || {
            times.lock().unwrap().push(start.elapsed().as_secs());
            let next = ends.lock().unwrap().next();
            let stop = stop.clone();
            async move {
                let Some((lasted, ended)) = next else {
                    stop.cancel();
                    return ConnectionEnd::Renew;
                };
                sleep(Duration::from_secs(lasted)).await;
                ended
            }
        };
        let result = supervise(&health, &stop, connect).await;
        (times.into_inner().unwrap(), result, health.get().state)
    }

    fn lost(lasted: u64) -> (u64, ConnectionEnd) {
        (lasted, ConnectionEnd::Lost("cut".into()))
    }

    #[tokio::test(start_paused = true)]
    async fn delays_grow_and_start_over_after_a_good_connection() {
        let (times, result, state) = tried(vec![lost(0), lost(0), lost(0), lost(3600), lost(0)]).await;
        assert_eq!((result, state), (Ok(()), HealthState::Stopped));
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps[0] <= 1 && gaps[1] <= 2 && (1..=4).contains(&gaps[2]), "{gaps:?}");
        assert!((3600..=3602).contains(&gaps[3]) && gaps[4] <= 2, "{gaps:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_is_immediate_and_a_requested_wait_is_respected() {
        let ends = vec![
            (7200, ConnectionEnd::Renew),
            (0, ConnectionEnd::Later("busy".into(), Duration::from_secs(90))),
        ];
        let (times, ..) = tried(ends).await;
        assert_eq!(times, [0, 7200, 7290]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_permanent_failure_ends_with_a_clear_error() {
        let auth = ChannelError::Auth("invalid_auth".into());
        let (times, result, state) = tried(vec![lost(0), (0, ConnectionEnd::Fatal(auth.clone()))]).await;
        assert_eq!((times.len(), result, state), (2, Err(auth), HealthState::AuthFailed));
        let config = ChannelError::Config("Socket Mode is off".into());
        let (_, result, state) = tried(vec![(0, ConnectionEnd::Fatal(config.clone()))]).await;
        assert_eq!((result, state), (Err(config), HealthState::Stopped));
    }
}
