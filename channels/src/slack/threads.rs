//! Threads in which the bot has spoken: messages there are meant for it.
//!
//! Threads in which this process spoke are remembered; of other threads Slack is asked once.

use super::{
    client::SlackClient,
    failure::SlackError,
    wire::{HistoryPage, SlackIdentity},
};
use crate::transport::Cache;

/// Maximum number of threads remembered.
const MAX_CACHED_THREADS: usize = 8192;
/// Number of messages of a thread that are searched.
const LOOKED_AT: &str = "200";

/// The threads that are known.
pub(super) struct ThreadCache(Cache<(String, String), bool>);

impl Default for ThreadCache {
    fn default() -> Self {
        Self(Cache::new(MAX_CACHED_THREADS))
    }
}

impl ThreadCache {
    /// The bot spoke here.
    pub(super) fn record_spoken(&self, channel: &str, thread: &str) {
        self.put(channel, thread, true);
    }

    /// Returns whether the bot has spoken in a thread.
    pub(super) async fn has_bot_spoken(
        &self,
        client: &SlackClient,
        me: &SlackIdentity,
        channel: &str,
        thread: &str,
    ) -> Result<bool, SlackError> {
        if let Some(known) = self.cached(channel, thread) {
            return Ok(known);
        }
        let params = [("channel", channel), ("ts", thread), ("limit", LOOKED_AT)];
        let ours = match client.read::<HistoryPage>("conversations.replies", &params).await {
            Ok(page) => page.messages.iter().any(|message| message.user.as_deref() == Some(&me.user)),
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => {
                tracing::debug!(%error, "failed to look up thread; the bot has to be named there");
                false
            }
        };
        // The bot may have spoken in the thread meanwhile.
        if self.cached(channel, thread).is_none() {
            self.put(channel, thread, ours);
        }
        Ok(ours)
    }

    fn cached(&self, channel: &str, thread: &str) -> Option<bool> {
        self.0.get(&(channel.to_owned(), thread.to_owned()))
    }

    fn put(&self, channel: &str, thread: &str, ours: bool) {
        self.0.put((channel.to_owned(), thread.to_owned()), ours);
    }
}
