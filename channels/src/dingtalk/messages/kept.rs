//! Stored records of DingTalk's messages, before and after they are sent. Later versions must still read this format.

use crate::{
    dingtalk::page::{DingTalkPage, digest},
    reply::{MessageRef, SendIntent},
};
use serde::{Deserialize, Serialize};

/// Deduplication data of a message about to be sent; `None` in older records.
pub(super) type StoredDedupKey = Option<DingDedupKey>;

/// A message about to be sent.
pub(super) type DingIntent = SendIntent<StoredDedupKey>;

/// Earlier attempts to send a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::dingtalk) struct DingDedupKey {
    /// How many times the answer may already have been sent as an ordinary message.
    #[serde(default, rename = "lost")]
    pub(super) unconfirmed_sends: u8,
    /// Whether the answer is about to be sent as an ordinary message.
    #[serde(default)]
    pub(super) answer: bool,
    /// Whether a card of the answer may already have been finalized.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) done: bool,
}

/// Record of a sent message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::dingtalk) struct DingMessageRef {
    pub(super) id: String,
    /// Whether it is a card.
    #[serde(default)]
    pub(super) card: bool,
    /// Whether it is final.
    #[serde(default)]
    pub(super) done: bool,
    /// Whether finishing the card was attempted. It may have succeeded, so nothing more can be streamed into the card.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ending: bool,
    /// Number of updates of a card.
    #[serde(default, rename = "nth")]
    pub(super) revision: u32,
    /// Digest of the shown text.
    #[serde(default, rename = "shows")]
    pub(super) text_digest: String,
    /// Digest of a card's buttons.
    #[serde(default)]
    pub(super) buttons: String,
}

impl MessageRef for DingMessageRef {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn from_id(id: &str) -> Option<Self> {
        let card = crate::dingtalk::seal::NameSeal::private(id).is_some();
        Some(Self {
            id: id.to_owned(),
            card,
            done: false,
            ending: card,
            revision: 0,
            text_digest: String::new(),
            buttons: String::new(),
        })
    }
}

/// Returns the record of an ordinary message that shows a page.
pub(super) fn posted_message(id: String, page: &DingTalkPage) -> DingMessageRef {
    DingMessageRef {
        id,
        card: false,
        done: page.done,
        ending: false,
        revision: 0,
        text_digest: digest(&[&page.words]),
        buttons: digest(&[&page.buttons()]),
    }
}
