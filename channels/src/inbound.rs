//! Decoded events from a platform.

use crate::{Address, PointedAt, PointedKind, attachment::Attachment, pointed::lines};
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
    /// Address of the event. In a group without topics the topic is `None`; `reply_to` identifies a chain.
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
    /// Data that the channel itself needs to answer this: a team, a token of an interaction. Only the channel reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Value>,
    /// The action.
    pub kind: InboundKind,
}

impl Inbound {
    /// Returns a message as a recent one of its chat: its words, the content that it passes on, and the names of its files,
    /// without their handles. `None` for a message without content and for other events.
    #[must_use]
    pub fn to_recent(&self) -> Option<PointedAt> {
        let InboundKind::Message { text, attachments, .. } = &self.kind else { return None };
        let passed_on: Vec<&PointedAt> =
            self.pointed.iter().filter(|piece| piece.kind.is_passed_on()).collect();
        let texts = std::iter::once(text.as_str()).chain(passed_on.iter().map(|piece| piece.text.as_str()));
        let files = attachments.iter().chain(passed_on.iter().flat_map(|piece| &piece.attachments));
        let files = files.map(|file| Attachment { handle: String::new(), ..file.clone() });
        let origin = passed_on.iter().find_map(|piece| piece.author.as_ref());
        let origin = origin.map(|author| format!("forwarded from {author}"));
        let piece = PointedAt {
            author_id: Some(self.sender.id.clone()).filter(|id| !id.is_empty()),
            at: Some(self.at).filter(|at| *at > 0),
            ..PointedAt::of_text(PointedKind::Recent, &lines(texts))
                .by(Some(&self.sender.name))
                .from(origin.as_deref())
                .with_files(files)
        };
        (!piece.is_empty()).then_some(piece)
    }

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
    /// The platform's stable id; empty for another bot, whose messages never address this one.
    pub id: String,
    /// The name that people see.
    pub name: String,
    /// The tag of the person's language, where the platform provides it: `en`, `zh-CN`, `zh-hans`.
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
    /// Pressed a button under one of our messages. It has the same meaning as typing `action`.
    Press {
        /// The button's text, as if typed. It comes from outside: no more trusted than typed text.
        action: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of Ada's in a group.
    fn message(text: &str, attachments: Vec<Attachment>, pointed: Vec<PointedAt>) -> Inbound {
        Inbound {
            key: EventKey("k".into()),
            address: Address { account: "a".into(), chat: "c".into(), topic: None },
            private: false,
            message: "9".into(),
            reply_to: None,
            sender: Sender { id: "7".into(), name: "Ada".into(), language: None },
            addressed: false,
            at: 5,
            pointed,
            hint: None,
            kind: InboundKind::Message { text: text.into(), attachments, album: None },
        }
    }

    #[test]
    fn a_recent_message_has_its_words_and_the_names_of_its_files() {
        let file =
            |handle: &str, name: &str| Attachment { handle: handle.into(), name: name.into(), size: None };
        let reply = PointedAt::of_text(PointedKind::Reply, "answered");
        let forward = PointedAt::of_text(PointedKind::Forward, "passed on").by(Some("Bob"));
        let forward = forward.with_files([file("F", "b.txt")]);
        let piece = message("see", vec![file("E", "a.txt")], vec![reply.clone(), forward]).to_recent();
        let expected = PointedAt {
            kind: PointedKind::Recent,
            author: Some("Ada".into()),
            author_id: Some("7".into()),
            at: Some(5),
            origin: Some("forwarded from Bob".into()),
            text: "see\npassed on".into(),
            attachments: vec![file("", "a.txt"), file("", "b.txt")],
            ..PointedAt::default()
        };
        assert_eq!(piece, Some(expected));
        assert_eq!(message(" ", Vec::new(), vec![reply]).to_recent(), None);
        let giant = message(&"é".repeat(50_000), Vec::new(), Vec::new()).to_recent();
        assert_eq!(giant.unwrap().text.chars().count(), 20_001, "the rest is cut");
        let edit =
            Inbound { kind: InboundKind::Edit { text: "x".into() }, ..message("", Vec::new(), Vec::new()) };
        assert_eq!(edit.to_recent(), None);
    }
}
