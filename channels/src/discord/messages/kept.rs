//! Stored records of Discord's messages, before and after they are sent. Later versions must still read this format.

use crate::reply::{MessageRef, SendIntent};
use serde::{Deserialize, Serialize};

/// Record of a sent message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::discord) struct DiscordMessageRef {
    pub(super) id: String,
    /// Channel of the message; empty in a record that contains only the message's id.
    #[serde(default)]
    pub(super) channel: String,
    /// Whether it replaced an interaction's "thinking…".
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) original: bool,
}

impl MessageRef for DiscordMessageRef {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn from_id(id: &str) -> Option<Self> {
        Some(Self { id: id.to_owned(), channel: String::new(), original: false })
    }
}

/// Data for finding a message again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::discord) struct DiscordDedupKey {
    /// When the first attempt to send it began, in milliseconds since 1970.
    pub(super) at: i64,
    /// Only messages after this id can be the sent one.
    pub(super) after: u64,
}

/// Stored state of the reply as a whole.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct DiscordReplyState {
    /// Whether thread creation failed, so the reply is in the channel.
    #[serde(default, rename = "threadless", skip_serializing_if = "std::ops::Not::not")]
    pub(super) thread_failed: bool,
    /// Whether the interaction's "thinking…" was already replaced, or does not exist.
    #[serde(default, rename = "used", skip_serializing_if = "std::ops::Not::not")]
    pub(super) placeholder_used: bool,
}

/// A message of the bot, as returned by Discord's API.
#[derive(Deserialize)]
pub(super) struct PostedMessage {
    pub(super) id: String,
    #[serde(default)]
    pub(super) channel_id: String,
}

/// A message about to be sent.
pub(super) type DiscordIntent = SendIntent<DiscordDedupKey>;
