//! Threads in which the bot has spoken. Messages in these threads address it.
//!
//! Threads in which this process has spoken are cached. Other threads are looked up on Slack once.

use super::{
    client::SlackClient,
    facts::SlackError,
    wire::{HistoryPage, SlackIdentity},
};
use crate::transport::Cache;

/// Maximum number of threads remembered.
const MAX_CACHED_THREADS: usize = 8192;
/// Number of messages of a thread to search.
const LOOKED_AT: &str = "200";

/// Known threads, by channel and timestamp, and whether the bot has spoken there.
#[derive(Default)]
pub(super) struct ThreadCache(Cache<(String, String), bool, MAX_CACHED_THREADS>);

impl ThreadCache {
    /// Records that the bot spoke in a thread.
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
                tracing::debug!(%error, "failed to look up thread; the bot has to be mentioned there");
                false
            }
        };
        // The bot may have spoken in the thread in the meantime.
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
