//! Rate limits: calls of a method per minute, and about one message per second to a channel. Disabled by default.

use super::error::{Answer, Refusal};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// Calls of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) on: bool,
    calls: HashMap<(String, String), VecDeque<Instant>>,
}

const MINUTE: Duration = Duration::from_secs(60);
/// Maximum burst of messages to one channel.
const BURST: usize = 4;

/// Returns a method's calls per minute; the documented minimum of its tier.
fn tier(method: &str) -> usize {
    match method {
        "apps.connections.open" => 1,
        "chat.startStream" | "chat.stopStream" | "conversations.list" | "users.conversations" => 20,
        "chat.appendStream" | "users.info" | "files.completeUploadExternal" => 100,
        _ => 50,
    }
}

impl Meter {
    /// Counts a call, or returns the delay.
    pub(crate) fn pass(&mut self, method: &str, channel: &str, now: Instant) -> Answer<()> {
        if !self.on {
            return Ok(());
        }
        let (window, most) = match method {
            "chat.postMessage" => (Duration::from_secs(BURST as u64), BURST),
            // One per minute, with some reserve for restarts.
            "apps.connections.open" => (MINUTE, 20),
            _ => (MINUTE, tier(method)),
        };
        let channel = if method == "chat.postMessage" { channel } else { "" };
        let calls = self.calls.entry((method.to_owned(), channel.to_owned())).or_default();
        while calls.front().is_some_and(|at| now.duration_since(*at) >= window) {
            calls.pop_front();
        }
        if calls.len() >= most {
            let first = calls.front().copied().unwrap_or(now);
            let left = window.saturating_sub(now.duration_since(first));
            return Err(Refusal::too_many(left.as_secs() + 1));
        }
        calls.push_back(now);
        Ok(())
    }
}
