//! Objects of the platform, as stored in the simulator. Their wire format is in `wire`.

use super::entity::Entity;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// ID of a user or the bot.
    UserId
}
id! {
    /// ID of a chat: the user's ID for a private one, negative for a group.
    ChatId
}
id! {
    /// ID of a message in its chat, or of a forum topic: the message that opened it.
    MessageId
}
id! {
    /// ID of an update.
    UpdateId
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The bot.
    Bot,
    /// A person.
    User(UserId),
}

/// A user, or the bot itself.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) id: UserId,
    pub(crate) name: String,
    pub(crate) username: Option<String>,
    /// Language of the user's app, as IETF tag.
    pub(crate) language: String,
}

/// Kind of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A private chat with the bot.
    Private,
    /// A basic group: it shares message numbers with the private chats.
    Group,
    /// A group with its own message numbers.
    Supergroup,
    /// A supergroup with topics.
    Forum,
}

/// Whether the bot may write to a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Open,
    Blocked,
    Kicked,
    Migrated(ChatId),
}

/// A chat with its messages in order.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) id: ChatId,
    pub(crate) kind: Kind,
    pub(crate) title: String,
    pub(crate) access: Access,
    pub(crate) members: BTreeSet<UserId>,
    pub(crate) topics: BTreeMap<MessageId, String>,
    pub(crate) messages: BTreeMap<MessageId, Message>,
    /// Last assigned number; only used by supergroups.
    pub(crate) last: i64,
    pub(crate) typing: Option<Typing>,
    pub(crate) draft: Option<Draft>,
    /// All texts of drafts, in order.
    pub(crate) drafts: Vec<Shown>,
}

/// "typing…" and similar, until it expires.
#[derive(Clone, Debug)]
pub(crate) struct Typing {
    pub(crate) action: String,
    pub(crate) until: Instant,
}

/// A growing text that is not a message yet.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) until: Instant,
}

/// The current state of a message, and its texts so far.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: MessageId,
    pub(crate) from: Author,
    pub(crate) date: i64,
    pub(crate) body: Body,
    pub(crate) reply_to: Option<MessageId>,
    /// The topic, or in a supergroup without topics the first message of the reply thread.
    pub(crate) thread: Option<MessageId>,
    pub(crate) edited: Option<i64>,
    pub(crate) deleted: bool,
    pub(crate) album: Option<String>,
    /// Author of a forwarded message.
    pub(crate) forwarded_from: Option<String>,
    pub(crate) reactions: Vec<String>,
    pub(crate) shown: Vec<Shown>,
    /// For service messages: the field with the event, and its value.
    pub(crate) service: Option<(&'static str, serde_json::Value)>,
}

/// Content of a message; compared as a whole to detect edits without a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Body {
    pub(crate) text: String,
    pub(crate) entities: Vec<Entity>,
    pub(crate) buttons: Vec<Vec<Button>>,
    pub(crate) file: Option<File>,
    pub(crate) preview_off: bool,
}

/// One inline button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// Label.
    pub text: String,
    /// Data for the bot when it is pressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_data: Option<String>,
    /// URL to open instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A file in a message; its bytes are in the file store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    /// ID to download or resend it.
    pub id: String,
    /// Its name; photos have none.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// Its size in bytes.
    pub size: usize,
    /// Whether it is shown as a photo.
    pub photo: bool,
}

/// A file to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// Its content.
    pub bytes: Bytes,
    /// Whether it is sent as a photo.
    pub photo: bool,
}

impl Upload {
    /// A document.
    #[must_use]
    pub fn document(name: &str, mime: &str, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.to_owned(), mime: mime.to_owned(), bytes: bytes.into(), photo: false }
    }

    /// A photo.
    #[must_use]
    pub fn photo(bytes: impl Into<Bytes>) -> Self {
        Self { name: String::new(), mime: "image/jpeg".to_owned(), bytes: bytes.into(), photo: true }
    }
}

/// A text that was shown from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Time of its first appearance.
    pub at: Instant,
    /// The text.
    pub text: String,
}

impl Chat {
    pub(crate) fn new(id: ChatId, kind: Kind, title: &str) -> Self {
        Self {
            id,
            kind,
            title: title.to_owned(),
            access: Access::Open,
            members: BTreeSet::new(),
            topics: BTreeMap::new(),
            messages: BTreeMap::new(),
            // Number 1 is the group's creation; in a forum it is the General topic.
            last: 1,
            typing: None,
            draft: None,
            drafts: Vec::new(),
        }
    }

    /// Returns a message unless it was deleted.
    pub(crate) fn message(&self, id: MessageId) -> Option<&Message> {
        self.messages.get(&id).filter(|message| !message.deleted)
    }

    pub(crate) fn message_mut(&mut self, id: MessageId) -> Option<&mut Message> {
        self.messages.get_mut(&id).filter(|message| !message.deleted)
    }

    pub(crate) fn is_supergroup(&self) -> bool {
        matches!(self.kind, Kind::Supergroup | Kind::Forum)
    }

    /// Returns the thread of a reply to `id`.
    pub(crate) fn thread_of(&self, id: MessageId) -> Option<MessageId> {
        let message = self.message(id)?;
        match self.kind {
            Kind::Forum => message.thread,
            Kind::Supergroup => message.thread.or(Some(id)),
            Kind::Private | Kind::Group => None,
        }
    }
}
