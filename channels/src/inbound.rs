//! Decoded events from a platform.

use crate::{Address, PointedAt, attachment::Attachment};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The platform's identity of an event, by which a redelivery is recognised. Unique in an account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventKey(pub String);

/// One event from a platform: something that a person did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inbound {
    /// By which a redelivery is recognised.
    pub key: EventKey,
    /// Address of the event. In a group without topics the topic is `None`; `reply_to` tells of a chain.
    pub address: Address,
    /// Whether only this person and the bot are in the chat.
    pub private: bool,
    /// The platform's id of the message that this is or is about.
    pub message: String,
    /// The message that this one answers, where the platform says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The person who acted.
    pub sender: Sender,
    /// Whether the bot was addressed: a private chat, a mention, a reply to its message, a command to it.
    pub addressed: bool,
    /// When, in milliseconds since 1970 by the platform's clock.
    pub at: i64,
    /// Content of others that a message points at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointed: Vec<PointedAt>,
    /// Data that the channel itself needs to answer this: a team, a token of an interaction. Nobody else
    /// reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Value>,
    /// The action.
    pub kind: InboundKind,
}

impl Inbound {
    /// Returns about how many bytes it has: its words, the content that it points at, and the handles of its files.
    #[must_use]
    pub fn size(&self) -> usize {
        let pointed: usize = self.pointed.iter().map(PointedAt::size).sum();
        let own = match &self.kind {
            InboundKind::Message { text, attachments, .. } => {
                let files = attachments.iter().map(|file| file.handle.len() + file.name.len());
                text.len() + files.sum::<usize>()
            }
            InboundKind::Edit { text } => text.len(),
            InboundKind::Press { action } => action.len(),
            InboundKind::Recall => 0,
        };
        own + pointed
    }
}

/// Author of an event. Only the id decides anything; names are for people to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The platform's stable id.
    pub id: String,
    /// The name that people see.
    pub name: String,
    /// The tag of the person's language, where the platform tells it: `en`, `zh-CN`, `zh-hans`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// Action of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InboundKind {
    /// Sent a message.
    Message {
        /// The words, the bot's own mention removed.
        text: String,
        /// Files that came with it; not fetched yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Files sent together arrive as several messages with one album id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        album: Option<String>,
    },
    /// Changed a message sent before.
    Edit {
        /// The new words.
        text: String,
    },
    /// Took a message back.
    Recall,
    /// Pressed a button under one of our messages. It means what typing `action` would mean.
    Press {
        /// The button's text, as if typed. It comes from outside: no more trusted than typed text.
        action: String,
    },
}
