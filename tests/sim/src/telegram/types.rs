//! The things of the platform, as the simulator keeps them. How they look on the wire is `wire`'s matter.

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
    /// Names a person or the bot.
    UserId
}
id! {
    /// Names a chat: a private one by its person's id, a group by a negative number.
    ChatId
}
id! {
    /// Names a message inside its chat, and a forum topic by the message that opened it.
    MessageId
}
id! {
    /// Names an update.
    UpdateId
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The bot.
    Bot,
    /// A person.
    User(UserId),
}

/// A person, or the bot itself.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) id: UserId,
    pub(crate) name: String,
    pub(crate) username: Option<String>,
    /// The language of the person's app, as IETF tag.
    pub(crate) language: String,
}

/// What kind of chat it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One person and the bot.
    Private,
    /// A small group: its messages share their numbers with the private chats.
    Group,
    /// A group with message numbers of its own.
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
    /// The last number given; used by supergroups alone.
    pub(crate) last: i64,
    pub(crate) typing: Option<Typing>,
    pub(crate) draft: Option<Draft>,
    /// All texts that drafts have shown, in order.
    pub(crate) drafts: Vec<Shown>,
}

/// "typing…" and its like, until it fades.
#[derive(Clone, Debug)]
pub(crate) struct Typing {
    pub(crate) action: String,
    pub(crate) until: Instant,
}

/// A text growing in the chat that is no message yet.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) until: Instant,
}

/// A message as it is now, and the texts that it has shown.
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
    /// Whose message it is, if it was passed on.
    pub(crate) forwarded_from: Option<String>,
    pub(crate) reactions: Vec<String>,
    pub(crate) shown: Vec<Shown>,
    /// For what the platform itself writes: the field that says what happened, and its value.
    pub(crate) service: Option<(&'static str, serde_json::Value)>,
}

/// What a message says; compared as a whole to tell whether an edit changes anything.
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
    /// What is written on it.
    pub text: String,
    /// What the bot hears when it is pressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_data: Option<String>,
    /// Where it leads instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A file in a message; its bytes are in the file store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    /// The id by which it is fetched or sent again.
    pub id: String,
    /// Its name; photos have none.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// Its size in bytes.
    pub size: usize,
    /// Whether it is shown as a picture.
    pub photo: bool,
}

/// A file on its way into a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// Its content.
    pub bytes: Bytes,
    /// Whether it is sent as a picture.
    pub photo: bool,
}

impl Upload {
    /// A document.
    #[must_use]
    pub fn document(name: &str, mime: &str, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.to_owned(), mime: mime.to_owned(), bytes: bytes.into(), photo: false }
    }

    /// A picture.
    #[must_use]
    pub fn photo(bytes: impl Into<Bytes>) -> Self {
        Self { name: String::new(), mime: "image/jpeg".to_owned(), bytes: bytes.into(), photo: true }
    }
}

/// A text that stood in the chat from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Since when.
    pub at: Instant,
    /// What it said.
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
            // Number 1 is the group's creation, and in a forum the General topic's.
            last: 1,
            typing: None,
            draft: None,
            drafts: Vec::new(),
        }
    }

    /// A message that is still there.
    pub(crate) fn message(&self, id: MessageId) -> Option<&Message> {
        self.messages.get(&id).filter(|message| !message.deleted)
    }

    pub(crate) fn message_mut(&mut self, id: MessageId) -> Option<&mut Message> {
        self.messages.get_mut(&id).filter(|message| !message.deleted)
    }

    pub(crate) fn is_supergroup(&self) -> bool {
        matches!(self.kind, Kind::Supergroup | Kind::Forum)
    }

    /// The thread that a reply to `id` belongs to.
    pub(crate) fn thread_of(&self, id: MessageId) -> Option<MessageId> {
        let message = self.message(id)?;
        match self.kind {
            Kind::Forum => message.thread,
            Kind::Supergroup => message.thread.or(Some(id)),
            Kind::Private | Kind::Group => None,
        }
    }
}
