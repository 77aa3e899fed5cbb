//! The bot's current activity, as Slack shows it below a thread.

use crate::ReplyTarget;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Slack takes a status away after two minutes.
pub(super) const STATUS: Duration = Duration::from_secs(90);

/// The status below the thread, and the time since when it is shown.
pub(super) struct ThreadStatus {
    shown: Mutex<Option<(String, Instant)>>,
    /// Text of the status while nothing else is known.
    thinking: &'static str,
}

impl ThreadStatus {
    /// A reply that a restart cut may have left words behind.
    pub(super) fn from_target(target: &ReplyTarget) -> Self {
        let thinking = target.language.is_thinking();
        let left = target.saved.as_ref().map(|_| (thinking.to_owned(), Instant::now()));
        Self { shown: Mutex::new(left), thinking }
    }

    /// Records the current status; returns false if it is shown already.
    pub(super) fn becomes(&self, words: &str) -> bool {
        let mut status = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = status.as_ref().map_or("", |(words, _)| words);
        let new = before != words;
        if new {
            *status = (!words.is_empty()).then(|| (words.to_owned(), Instant::now()));
        }
        new
    }

    /// Returns the status that has to be sent: for the first time, or again before Slack takes it away.
    pub(super) fn due_status(&self) -> Option<String> {
        let mut status = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if status.as_ref().is_some_and(|(_, at)| now.duration_since(*at) < STATUS) {
            return None;
        }
        let words = status.take().map_or_else(|| self.thinking.to_owned(), |(words, _)| words);
        *status = Some((words.clone(), now));
        Some(words)
    }
}
