//! The bot's current activity, shown by Slack below a thread.

use crate::ReplyTarget;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Refresh interval of a status. Slack removes it after two minutes.
pub(super) const STATUS: Duration = Duration::from_secs(90);

/// Status below the thread, and when it was set.
pub(super) struct ThreadStatus {
    shown: Mutex<Option<(String, Instant)>>,
    /// Default text of the status.
    thinking: &'static str,
}

impl ThreadStatus {
    /// Creates the status of a reply. A resumed reply may have left one before the restart.
    pub(super) fn from_target(target: &ReplyTarget) -> Self {
        let thinking = target.language.is_thinking();
        let left = target.saved.as_ref().map(|_| (thinking.to_owned(), Instant::now()));
        Self { shown: Mutex::new(left), thinking }
    }

    /// Records the current status. Returns false if it is already shown.
    pub(super) fn becomes(&self, words: &str) -> bool {
        let mut status = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = status.as_ref().map_or("", |(words, _)| words);
        let new = before != words;
        if new {
            *status = (!words.is_empty()).then(|| (words.to_owned(), Instant::now()));
        }
        new
    }

    /// Returns the status if it has to be sent: for the first time, or again before Slack removes it.
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
