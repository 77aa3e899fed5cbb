//! Stored records of DingTalk's messages, before and after they are sent. A change must read the old format.

use crate::{
    dingtalk::page::{DingTalkPage, digest},
    reply::{MessageRef, SendIntent},
};
use serde::{Deserialize, Serialize};

/// Stored record of a message that is about to be sent; `None` in older records.
pub(super) type StoredDedupKey = Option<DingDedupKey>;

/// A message of DingTalk's that is about to be sent.
pub(super) type DingIntent = SendIntent<StoredDedupKey>;

/// How a message fared so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::dingtalk) struct DingDedupKey {
    /// How often the answer was perhaps sent as an ordinary message before.
    #[serde(default)]
    pub(super) lost: u8,
    /// Whether it is about to be sent so.
    #[serde(default)]
    pub(super) answer: bool,
    /// Whether a card of the answer is perhaps finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) done: bool,
}

/// A message that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::dingtalk) struct DingMessageRef {
    pub(super) id: String,
    /// Whether it is a card.
    #[serde(default)]
    pub(super) card: bool,
    /// Whether it will not change any more.
    #[serde(default)]
    pub(super) done: bool,
    /// Whether a card was about to be finished: it may be. Nothing can be streamed into it then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ending: bool,
    /// How many changes a card has seen.
    #[serde(default)]
    pub(super) nth: u32,
    /// Digest of the shown words.
    #[serde(default)]
    pub(super) shows: String,
    /// A short name for a card's buttons.
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
            nth: 0,
            shows: String::new(),
            buttons: String::new(),
        })
    }
}

/// An ordinary message that shows a page.
pub(super) fn posted_message(id: String, page: &DingTalkPage) -> DingMessageRef {
    DingMessageRef {
        id,
        card: false,
        done: page.done,
        ending: false,
        nth: 0,
        shows: digest(&[&page.words]),
        buttons: digest(&[&page.buttons()]),
    }
}
