//! Stored records of Discord's messages, before and after they are sent. A change must read the old format.

use crate::reply::{MessageRef, SendIntent};
use serde::{Deserialize, Serialize};

/// A message that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::discord) struct DiscordMessageRef {
    pub(super) id: String,
    /// Channel of the message; empty in a record that contains only the message's id.
    #[serde(default)]
    pub(super) channel: String,
    /// Whether it took the place of an interaction's "thinking…".
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

/// By which a message is found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::discord) struct DiscordDedupKey {
    /// When it was first to be sent, in milliseconds since 1970.
    pub(super) at: i64,
    /// It is newer than this one.
    pub(super) after: u64,
}

/// Stored state of the reply as a whole.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct DiscordReplyState {
    /// No thread could begin: the reply is in the channel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) threadless: bool,
    /// The interaction's place was taken, or is not there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) used: bool,
}

/// A message of the bot's own, as Discord's API returns it.
#[derive(Deserialize)]
pub(super) struct PostedMessage {
    pub(super) id: String,
    #[serde(default)]
    pub(super) channel_id: String,
}

/// A message of Discord's that is about to be sent.
pub(super) type DiscordIntent = SendIntent<DiscordDedupKey>;
