//! Health of a channel.

use pudu_net::scrub;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State of a channel's connection to its platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// The channel has not reached the platform yet.
    #[default]
    Connecting,
    /// The platform answers and events flow.
    Ready,
    /// The connection worked before, but does not now. The channel keeps trying.
    Degraded,
    /// The platform refused the credentials. The channel has stopped trying.
    AuthFailed,
    /// The channel was stopped.
    Stopped,
}

/// Health of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// State of the connection.
    pub state: HealthState,
    /// Time of the last event, in milliseconds since 1970.
    pub last_event: Option<i64>,
    /// The last error, without secrets. Cleared when the channel works again.
    pub last_error: Option<String>,
}

/// Health shared between the channel, which writes it, and its readers.
#[derive(Clone, Debug, Default)]
pub struct HealthCell(Arc<Mutex<TrackedHealth>>);

#[derive(Debug, Default)]
struct TrackedHealth {
    health: Health,
    /// Whether the only problem is an event that was not stored.
    missed: bool,
}

impl HealthCell {
    /// Returns the current health.
    #[must_use]
    pub fn get(&self) -> Health {
        self.lock().health.clone()
    }

    /// Records that the platform answers.
    pub fn ready(&self) {
        self.change(|health| {
            health.state = HealthState::Ready;
            health.last_error = None;
        });
    }

    /// Records that an event could not be stored although the connection works.
    pub fn not_kept(&self, why: impl std::fmt::Display) {
        let mut known = self.lock();
        if known.missed || matches!(known.health.state, HealthState::Connecting | HealthState::Ready) {
            known.missed = true;
            known.health.state = HealthState::Degraded;
            known.health.last_error =
                Some(scrub::hide(&format!("an event was not stored: {why}")).into_owned());
        }
    }

    /// Records that an event was stored. Restores the health if nothing else is wrong.
    pub fn kept(&self) {
        if self.lock().missed {
            self.ready();
        }
    }

    /// Records an event received at `now`, in milliseconds since 1970.
    pub fn event(&self, now: i64) {
        self.lock().health.last_event = Some(now);
    }

    /// Records a failure.
    pub fn failed(&self, state: HealthState, error: impl Into<String>) {
        // A server posing as the platform may echo the request, including secrets.
        let error = scrub::hide(&error.into()).into_owned();
        self.change(|health| {
            health.state = state;
            health.last_error = Some(error);
        });
    }

    /// Records that the channel was stopped deliberately.
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
    fn an_unstored_event_degrades_health_and_hides_no_broken_connection() {
        let cell = HealthCell::default();
        cell.ready();
        cell.not_kept("full");
        assert_eq!(
            state_and_error(&cell),
            (HealthState::Degraded, Some("an event was not stored: full".into()))
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
