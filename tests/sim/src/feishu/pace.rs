//! The documented rate limits, disabled by default: five messages per second to one chat, five changes per second of
//! one message, ten operations per second on one card.

use super::refusal::{Answer, Refusal};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(1);

/// Counts the operations of the last second.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) on: bool,
    seen: HashMap<String, VecDeque<Instant>>,
}

impl Meter {
    /// Five per second for a chat or a message.
    pub(crate) fn five(&mut self, of: &str) -> Answer<()> {
        let why = "The message sending rate has reached the limit, ext=chat rate limit";
        self.pass(of, 5).then_some(()).ok_or_else(|| Refusal::new(230_020, why))
    }

    /// Ten per second for a card.
    pub(crate) fn ten(&mut self, card: &str) -> Answer<()> {
        self.pass(card, 10).then_some(()).ok_or_else(|| Refusal::gateway(1))
    }

    fn pass(&mut self, of: &str, most: usize) -> bool {
        let now = Instant::now();
        let seen = self.seen.entry(of.to_owned()).or_default();
        while seen.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            seen.pop_front();
        }
        let passes = !self.on || seen.len() < most;
        if passes {
            seen.push_back(now);
        }
        passes
    }
}
