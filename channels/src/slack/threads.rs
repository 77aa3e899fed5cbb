//! Threads in which the bot has spoken: messages there are meant for it.
//!
//! Threads in which this process spoke are remembered; of other threads Slack is asked once.

use super::{
    client::SlackClient,
    failure::SlackApiError,
    wire::{HistoryPage, SlackIdentity},
};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Maximum number of threads remembered.
const MAX_CACHED_THREADS: usize = 8192;
/// So many messages of a thread are looked through.
const LOOKED_AT: &str = "200";

/// The threads that are known.
#[derive(Default)]
pub(super) struct ThreadCache(Mutex<HashMap<(String, String), bool>>);

impl ThreadCache {
    /// The bot spoke here.
    pub(super) fn spoke(&self, channel: &str, thread: &str) {
        self.put(channel, thread, true);
    }

    /// Returns whether the bot has spoken in a thread.
    pub(super) async fn ours(
        &self,
        client: &SlackClient,
        me: &SlackIdentity,
        channel: &str,
        thread: &str,
    ) -> Result<bool, SlackApiError> {
        if let Some(known) = self.known(channel, thread) {
            return Ok(known);
        }
        let params = [("channel", channel), ("ts", thread), ("limit", LOOKED_AT)];
        let ours = match client.read::<HistoryPage>("conversations.replies", &params).await {
            Ok(page) => page.messages.iter().any(|message| message.user.as_deref() == Some(&me.user)),
            Err(
                error @ (SlackApiError::Wait(_) | SlackApiError::Unconnected(_) | SlackApiError::Unknown(_)),
            ) => {
                return Err(error);
            }
            Err(error) => {
                tracing::debug!(%error, "a thread cannot be looked at; who means the bot there has to name it");
                false
            }
        };
        // Somebody may have made the bot speak meanwhile.
        if self.known(channel, thread).is_none() {
            self.put(channel, thread, ours);
        }
        Ok(ours)
    }

    fn known(&self, channel: &str, thread: &str) -> Option<bool> {
        let threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.get(&(channel.to_owned(), thread.to_owned())).copied()
    }

    fn put(&self, channel: &str, thread: &str, ours: bool) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() >= MAX_CACHED_THREADS {
            threads.clear();
        }
        threads.insert((channel.to_owned(), thread.to_owned()), ours);
    }
}
