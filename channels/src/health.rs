//! How a channel is doing, told honestly.

use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// The state of a channel's connection to its platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// It has not reached the platform yet.
    #[default]
    Connecting,
    /// The platform answers and events flow.
    Ready,
    /// It worked and does not now; it goes on trying.
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
    /// What went wrong last, without secrets; cleared when it works again.
    pub last_error: Option<String>,
}

/// A channel's health, shared between the channel, which writes it, and those who ask.
#[derive(Clone, Debug, Default)]
pub struct HealthCell(Arc<Mutex<Health>>);

impl HealthCell {
    /// Returns the health now.
    #[must_use]
    pub fn get(&self) -> Health {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The platform answers.
    pub fn ready(&self) {
        self.change(|health| {
            health.state = HealthState::Ready;
            health.last_error = None;
        });
    }

    /// An event came, at `now` in milliseconds since 1970.
    pub fn event(&self, now: i64) {
        self.change(|health| health.last_event = Some(now));
    }

    /// Something went wrong.
    pub fn failed(&self, state: HealthState, error: impl Into<String>) {
        let error = error.into();
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
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
