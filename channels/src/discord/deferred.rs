//! The hint that an event stores for its reply, and the state of commands that are answered through their interaction.
//!
//! Discord shows "thinking…" for a deferred command until the reply replaces it. The reply waits until Discord has
//! accepted the deferral, because Discord would refuse it earlier.

use super::wire::id_time;
use crate::transport::Cache;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::{sync::watch, time::timeout};

/// How long an interaction can be answered, in milliseconds: 15 minutes, minus a margin for clock differences and the
/// duration of calls.
const INTERACTION_LIFETIME_MS: i64 = 14 * 60 * 1000;
/// How long a reply waits for the deferral.
const DEFERRAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of commands remembered.
const MAX_DEFERRED_COMMANDS: usize = 256;

/// Data that an event stores for its reply. Stored: later versions must still read this format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DiscordHint {
    /// The reply starts a thread from the message that it answers.
    Thread {
        /// Name of the thread.
        name: String,
    },
    /// The reply answers a command through its interaction.
    Answer {
        /// Token of the interaction.
        token: String,
        /// When the token was issued, in milliseconds since 1970.
        at: i64,
    },
}

impl DiscordHint {
    pub(super) fn answer(token: &str, at: i64) -> Self {
        Self::Answer { token: token.to_owned(), at }
    }

    pub(super) fn to_json(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }

    pub(super) fn read(kept: Option<&Value>) -> Option<Self> {
        serde_json::from_value(kept?.clone()).ok()
    }
}

/// Returns whether an interaction can still be answered. `at` is when Discord issued it.
pub(super) fn can_respond(at: i64, now: i64) -> bool {
    now.saturating_sub(at) < INTERACTION_LIFETIME_MS
}

/// Returns when an interaction was created, which its id encodes; at most `now`.
pub(super) fn interaction_time(id: &str, now: i64) -> i64 {
    id_time(id).unwrap_or(now).min(now)
}

/// Recent commands, by token.
#[derive(Default)]
pub(super) struct Deferred(Cache<String, DeferredCommand, MAX_DEFERRED_COMMANDS>);

struct DeferredCommand {
    /// Whether Discord accepted the deferral; `None` while that is pending.
    taken: watch::Sender<Option<bool>>,
    /// Whether a reply has begun.
    answered: bool,
}

impl Deferred {
    /// Records a command that will be deferred.
    pub(super) fn expect(&self, token: &str) {
        let make = || DeferredCommand { taken: watch::Sender::new(None), answered: false };
        self.0.change(token.to_owned(), make, |_| {});
    }

    /// Records whether Discord accepted the deferral.
    pub(super) fn taken(&self, token: &str, taken: bool) {
        self.0.with(token, |command| command.taken.send_replace(Some(taken)));
    }

    /// Records that a reply has begun.
    pub(super) fn answered(&self, token: &str) {
        self.0.with(token, |command| command.answered = true);
    }

    /// Returns whether a reply has begun.
    pub(super) fn is_answered(&self, token: &str) -> bool {
        self.0.with(token, |command| command.answered).unwrap_or(false)
    }

    /// Waits until the command is deferred, and returns whether that succeeded. A timeout counts as success, and so
    /// does a command from an earlier process.
    pub(super) async fn ready(&self, token: &str) -> bool {
        let Some(mut taken) = self.0.with(token, |command| command.taken.subscribe()) else { return true };
        match timeout(DEFERRAL_TIMEOUT, taken.wait_for(Option::is_some)).await {
            Ok(Ok(taken)) => taken.unwrap_or(true),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_format_of_hints_is_stable() {
        let cases = [
            (DiscordHint::Thread { name: "story".into() }, json!({"thread": {"name": "story"}})),
            (DiscordHint::answer("t", 5), json!({"answer": {"token": "t", "at": 5}})),
        ];
        for (hint, stored) in cases {
            assert_eq!(hint.to_json(), Some(stored.clone()));
            assert_eq!(DiscordHint::read(Some(&stored)), Some(hint));
        }
        assert_eq!(DiscordHint::read(Some(&json!({"of another version": 1}))), None);
    }

    #[test]
    fn interactions_expire_slightly_early() {
        assert!(can_respond(0, INTERACTION_LIFETIME_MS - 1) && !can_respond(0, INTERACTION_LIFETIME_MS));
        assert_eq!(interaction_time("175928847299117063", i64::MAX), 1_462_015_105_796);
        assert_eq!(interaction_time("175928847299117063", 7), 7, "with a lagging clock");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_waits_for_the_deferral() {
        let deferred = Deferred::default();
        assert!(deferred.ready("of an earlier process").await);
        for (token, taken) in [("a", true), ("b", false)] {
            deferred.expect(token);
            let (ready, ()) = tokio::join!(deferred.ready(token), async { deferred.taken(token, taken) });
            assert_eq!(ready, taken);
        }
        assert!(!deferred.is_answered("a"));
        deferred.answered("a");
        assert!(deferred.is_answered("a") && !deferred.is_answered("b"));
    }
}
