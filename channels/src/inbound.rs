//! Decoded events from a platform.

use crate::{Address, PointedAt, PointedKind, attachment::Attachment, pointed::lines};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Identity of an event, used to recognise redeliveries. Unique within a bot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventKey(pub String);

/// One event from a platform: an action of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inbound {
    /// Identity of the event.
    pub key: EventKey,
    /// Address of the event. In a group without topics the topic is `None`; `reply_to` identifies a chain.
    pub address: Address,
    /// Whether the chat contains only this user and the bot.
    pub private: bool,
    /// The platform's id of the new message, or of the message that the event refers to.
    pub message: String,
    /// The message that this one replies to, if the platform reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The user who acted.
    pub sender: Sender,
    /// Whether the event addresses the bot: in a private chat, or by a mention, a reply to the bot, or a command.
    pub addressed: bool,
    /// Time of the event by the platform's clock, in milliseconds since 1970.
    pub at: i64,
    /// Content by others that the message refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointed: Vec<PointedAt>,
    /// Data that the channel needs for its answer, such as a team or an interaction token. Only the channel reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Value>,
    /// The action.
    pub kind: InboundKind,
}

impl Inbound {
    /// Converts the message to a recent message of its chat ([`PointedKind::Recent`]), with its text, forwarded content
    /// and file names, but without file handles. `None` if the message is empty, or the event is not a message.
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

    /// Returns the approximate size in bytes: text, content that it refers to, and the handles of files.
    #[must_use]
    pub fn size(&self) -> usize {
        let pointed: usize = self.pointed.iter().map(PointedAt::size).sum();
        let own = match &self.kind {
            InboundKind::Message { text, attachments, .. } | InboundKind::Submit { text, attachments } => {
                let files = attachments.iter().map(|file| file.handle.len() + file.name.len());
                text.len() + files.sum::<usize>()
            }
            InboundKind::Edit { text } | InboundKind::Scheduled { text, .. } => text.len(),
            InboundKind::Press { action } => action.len(),
            InboundKind::Recall => 0,
        };
        own + pointed
    }
}

/// Author of an event. Only the id is used in decisions; names are for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The platform's stable id; empty for another bot, whose messages never address this bot.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Language tag of the user, if the platform provides it: `en`, `zh-CN`, `zh-hans`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// Action of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InboundKind {
    /// The user sent a message.
    Message {
        /// The text, without mentions of the bot.
        text: String,
        /// Attached files, not downloaded yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Album id, shared by the messages that deliver files sent together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        album: Option<String>,
    },
    /// The user edited a message.
    Edit {
        /// The new text.
        text: String,
    },
    /// The user submitted the form below one of the bot's messages. Equivalent to a message with these answers.
    Submit {
        /// The checked answers, a line for each.
        text: String,
        /// Files uploaded with the form, not downloaded yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// The user deleted a message.
    Recall,
    /// A scheduled task of the user is due. No platform sends it. The event's key is the id of the task's run.
    Scheduled {
        /// The task's title.
        title: String,
        /// The task's prompt.
        text: String,
        /// The agent, if the task has its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The model, if the task has its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Maximum number of tokens of the run, if the task has a limit of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<u64>,
    },
    /// The user pressed a button under one of the bot's messages. Equivalent to typing `action`.
    Press {
        /// Text that the button types. It comes from outside, and is no more trusted than typed text.
        action: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message from Ada in a group.
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
    fn a_recent_message_has_its_text_and_file_names() {
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
        assert_eq!(giant.unwrap().text.chars().count(), 20_001, "the text is truncated");
        let edit =
            Inbound { kind: InboundKind::Edit { text: "x".into() }, ..message("", Vec::new(), Vec::new()) };
        assert_eq!(edit.to_recent(), None);
    }
}
