//! Rate limits of sends and edits, per chat and for the bot.
//!
//! The real limits are not published, so there are no defaults: a test sets its own.

use super::{
    error::{Answer, Refusal},
    types::ChatId,
};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// At most `count` calls in any stretch of time as long as `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Number of calls.
    pub count: usize,
    /// Period.
    pub per: Duration,
}

/// Active limits; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paces {
    /// For each private chat.
    pub private: Option<Pace>,
    /// For each group of any kind.
    pub group: Option<Pace>,
    /// For the bot as a whole.
    pub overall: Option<Pace>,
}

/// Counts calls against the limits.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) paces: Paces,
    chats: HashMap<ChatId, VecDeque<Instant>>,
    overall: VecDeque<Instant>,
}

impl Meter {
    /// Counts a call, or returns the delay. A refused call does not count.
    pub(crate) fn pass(&mut self, chat: ChatId, now: Instant) -> Answer<()> {
        let pace = if chat.0 < 0 { self.paces.group } else { self.paces.private };
        let calls = self.chats.entry(chat).or_default();
        let wait = wait(calls, pace, now).max(wait(&mut self.overall, self.paces.overall, now));
        if !wait.is_zero() {
            return Err(Refusal::too_many(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)));
        }
        if pace.is_some() {
            calls.push_back(now);
        }
        if self.paces.overall.is_some() {
            self.overall.push_back(now);
        }
        Ok(())
    }
}

fn wait(calls: &mut VecDeque<Instant>, pace: Option<Pace>, now: Instant) -> Duration {
    let Some(pace) = pace else { return Duration::ZERO };
    while calls.front().is_some_and(|at| *at + pace.per <= now) {
        calls.pop_front();
    }
    match calls.front() {
        Some(first) if calls.len() >= pace.count => *first + pace.per - now,
        Some(_) | None => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_call_too_many_is_told_how_long_to_wait_and_passes_then() {
        let pace = |count, per| Some(Pace { count, per });
        let paces = Paces { private: pace(1, SECOND), group: pace(2, 60 * SECOND), overall: pace(3, SECOND) };
        let mut meter = Meter { paces, ..Meter::default() };
        let start = Instant::now();
        let mut pass =
            |chat, after| meter.pass(ChatId(chat), start + after).map_err(|refusal| refusal.retry_after);
        assert_eq!(pass(1, Duration::ZERO), Ok(()));
        assert_eq!(pass(1, Duration::from_millis(500)), Err(Some(1)), "one a second in a private chat");
        assert_eq!(pass(1, SECOND), Ok(()));
        assert_eq!(pass(-1, SECOND), Ok(()));
        assert_eq!(pass(-1, SECOND), Ok(()));
        assert_eq!(pass(-1, 2 * SECOND), Err(Some(59)), "two a minute in a group");
        for chat in 2..5 {
            assert_eq!(pass(chat, 3 * SECOND), Ok(()));
        }
        assert_eq!(pass(9, 3 * SECOND), Err(Some(1)), "three a second in all");
    }
}
