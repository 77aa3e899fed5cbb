//! Health of a channel.

use pudu_net::scrub;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of a channel's connection to its platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// It has not reached the platform yet.
    #[default]
    Connecting,
    /// The platform answers and events flow.
    Ready,
    /// It worked before and does not now; it keeps trying.
    Degraded,
    /// The platform refused the credentials; it has stopped trying.
    AuthFailed,
    /// It was stopped.
    Stopped,
}

/// How a channel is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The state.
    pub state: HealthState,
    /// When the platform last sent an event, in milliseconds since 1970.
    pub last_event: Option<i64>,
    /// The last error, without secrets; cleared when it works again.
    pub last_error: Option<String>,
}

/// A channel's health, shared between the channel, which writes it, and those who ask.
#[derive(Clone, Debug, Default)]
pub struct HealthCell(Arc<Mutex<TrackedHealth>>);

#[derive(Debug, Default)]
struct TrackedHealth {
    health: Health,
    /// Whether all that is wrong is that an event was not kept.
    missed: bool,
}

impl HealthCell {
    /// Returns the health now.
    #[must_use]
    pub fn get(&self) -> Health {
        self.lock().health.clone()
    }

    /// The platform answers.
    pub fn ready(&self) {
        self.change(|health| {
            health.state = HealthState::Ready;
            health.last_error = None;
        });
    }

    /// An event could not be kept, though the connection is well.
    pub fn not_kept(&self, why: impl std::fmt::Display) {
        let mut known = self.lock();
        if known.missed || matches!(known.health.state, HealthState::Connecting | HealthState::Ready) {
            known.missed = true;
            known.health.state = HealthState::Degraded;
            known.health.last_error =
                Some(scrub::hide(&format!("an event was not kept: {why}")).into_owned());
        }
    }

    /// An event is kept: it is well again, if that was all.
    pub fn kept(&self) {
        if self.lock().missed {
            self.ready();
        }
    }

    /// An event came, at `now` in milliseconds since 1970.
    pub fn event(&self, now: i64) {
        self.lock().health.last_event = Some(now);
    }

    /// Something went wrong.
    pub fn failed(&self, state: HealthState, error: impl Into<String>) {
        // A server in the platform's place may repeat the request with all that is in it.
        let error = scrub::hide(&error.into()).into_owned();
        self.change(|health| {
            health.state = state;
            health.last_error = Some(error);
        });
    }

    /// The channel was stopped on purpose.
    pub fn stopped(&self) {
        self.change(|health| health.state = HealthState::Stopped);
    }

    fn change(&self, change: impl FnOnce(&mut Health)) {
        let mut known = self.lock();
        change(&mut known.health);
        known.missed = false;
    }

    fn lock(&self) -> MutexGuard<'_, TrackedHealth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_and_error(cell: &HealthCell) -> (HealthState, Option<String>) {
        let Health { state, last_error, .. } = cell.get();
        (state, last_error)
    }

    #[test]
    fn what_is_not_kept_shows_until_something_is_and_hides_no_broken_connection() {
        let cell = HealthCell::default();
        cell.ready();
        cell.not_kept("full");
        assert_eq!(
            state_and_error(&cell),
            (HealthState::Degraded, Some("an event was not kept: full".into()))
        );
        cell.kept();
        assert_eq!(state_and_error(&cell), (HealthState::Ready, None));
        cell.not_kept("full");
        cell.failed(HealthState::Degraded, "cut");
        cell.not_kept("full");
        cell.kept();
        assert_eq!(state_and_error(&cell), (HealthState::Degraded, Some("cut".into())));
    }
}
