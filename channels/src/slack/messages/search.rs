//! Finds a message that may have been sent, and handles the case that the history cannot be read.

use super::{EVENT, SlackDedupKey, SlackMessageRef, SlackMessages};
use crate::{
    SendError,
    reply::SendIntent,
    slack::{
        facts::SlackError,
        wire::SlackIdentity,
        wire::{Metadata, SlackMessage},
    },
};
use std::{collections::HashSet, sync::atomic::Ordering};

/// Maximum number of pages of a thread to search.
const PAGES: usize = 5;

impl SlackMessages {
    /// Returns the messages in this reply's conversation since `since`, in milliseconds since 1970.
    pub(super) async fn messages_in_place(&self, since: i64) -> Result<Vec<SlackMessage>, SlackError> {
        let oldest = format!("{}.000000", since.max(0) / 1000);
        let mut params = vec![
            ("channel", self.channel.as_str()),
            ("oldest", oldest.as_str()),
            ("limit", "200"),
            ("include_all_metadata", "true"),
        ];
        let method = match &self.thread {
            Some(thread) => {
                params.push(("ts", thread.as_str()));
                "conversations.replies"
            }
            None => "conversations.history",
        };
        self.state.client.history(method, &params, PAGES, |_| true).await
    }

    /// Finds the message of an intent by its key, or, if a stream may have begun, the newest unrecorded message in the
    /// thread.
    pub(super) fn pick(
        &self,
        me: &SlackIdentity,
        messages: &[SlackMessage],
        intent: &SendIntent<Option<SlackDedupKey>>,
        known: &HashSet<String>,
    ) -> Option<SlackMessageRef> {
        let has_key = |metadata: &Metadata| {
            metadata.event_type == EVENT && metadata.event_payload["key"] == intent.key.as_str()
        };
        let ours: Vec<&SlackMessage> = messages.iter().filter(|message| message.is_by(me)).collect();
        let keyed = ours.iter().find(|message| message.metadata.as_ref().is_some_and(has_key));
        let unknown = |message: &&&SlackMessage| {
            let ts = message.ts.as_deref().unwrap_or_default();
            let in_thread = self.thread.is_some() && message.thread_ts.as_ref() == self.thread.as_ref();
            in_thread && message.metadata.is_none() && message.files.is_empty() && !known.contains(ts)
        };
        let is_stream = intent.dedup_key.is_none_or(|tries| tries.stream);
        let stream = || ours.iter().rev().find(unknown).filter(|_| is_stream).map(|message| (message, true));
        let (message, stream) = keyed.map(|message| (message, false)).or_else(stream)?;
        Some(SlackMessageRef { ts: message.ts.clone()?, stream })
    }

    /// Returns how many attempts of an intent may have sent a message.
    pub(super) fn unknown(&self, tries: Option<SlackDedupKey>) -> u8 {
        tries.map_or(1, |tries| tries.unknown).saturating_sub(u8::from(self.undone))
    }

    /// Handles a message that may have been sent and cannot be searched for. It is sent only once more, so the second
    /// attempt waits for the complete text.
    pub(super) fn resend_once(
        &mut self,
        intent: &SendIntent<Option<SlackDedupKey>>,
        why: &SlackError,
    ) -> Result<Option<SlackMessageRef>, SendError> {
        self.blind = true;
        match (self.unknown(intent.dedup_key), self.ends.load(Ordering::Relaxed)) {
            (0, _) => Ok(None),
            (1, true) => {
                tracing::warn!(%why, "failed to look for a message that may have been sent; it may appear twice");
                Ok(None)
            }
            (1, false) => {
                self.spend(false);
                let what = format!("a message may have been sent and cannot be looked for: {why}");
                Err(SendError::Unreachable(what))
            }
            _ => {
                tracing::warn!(%why, "failed to look for a message that may have been sent twice; assuming that it is shown");
                Ok(Some(SlackMessageRef { ts: String::new(), stream: false }))
            }
        }
    }
}
