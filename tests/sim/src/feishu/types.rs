//! State of chats, messages and cards.

use super::{ask::Part, content::Face};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};
use tokio::time::Instant;

/// Time after which a card's stream closes automatically.
pub(crate) const STREAM: Duration = Duration::from_secs(10 * 60);

/// Kind of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Private,
    Group,
    /// A group that shows its messages as topics, although events call it a group.
    Threads,
    Topics,
}

impl Kind {
    /// Returns the name in events.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Private => "p2p",
            Self::Group | Self::Threads => "group",
            Self::Topics => "topic_group",
        }
    }

    /// Returns the name in the chat itself.
    pub(crate) fn mode(self) -> &'static str {
        match self {
            Self::Topics => "topic",
            other => other.word(),
        }
    }

    /// Returns the form of its messages in the chat itself.
    pub(crate) fn form(self) -> &'static str {
        if self.opens_topics() { "thread" } else { "chat" }
    }

    /// Returns whether every message that is not a reply opens a topic.
    pub(crate) fn opens_topics(self) -> bool {
        matches!(self, Self::Threads | Self::Topics)
    }
}

/// A chat.
#[derive(Clone, Debug)]
pub(crate) struct Chat {
    pub(crate) kind: Kind,
    pub(crate) title: String,
    pub(crate) members: BTreeSet<String>,
    pub(crate) messages: Vec<String>,
    /// Error code for all calls.
    pub(crate) closed: Option<i64>,
}

/// An emoji on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// ID, to remove it.
    pub id: String,
    /// Name, such as `OK` or `Typing`.
    pub emoji: String,
}

/// A pressed button.
#[derive(Clone, Debug, PartialEq)]
pub struct Press {
    /// ID of the event.
    pub event: String,
    /// The button's value.
    pub value: Value,
    /// The bot's response, if it came within three seconds: `null` if it was empty.
    pub answer: Option<Value>,
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) chat: String,
    /// `None` means the bot.
    pub(crate) from: Option<String>,
    pub(crate) kind: String,
    pub(crate) content: String,
    pub(crate) mentions: Vec<Value>,
    pub(crate) root: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) thread: Option<String>,
    pub(crate) card: Option<String>,
    pub(crate) created: i64,
    pub(crate) at: Instant,
    pub(crate) edits: u32,
    pub(crate) deleted: bool,
    pub(crate) reactions: Vec<Reaction>,
    /// Its current visible content.
    pub(crate) face: Face,
    pub(crate) history: Vec<String>,
    /// Messages of a forwarded bundle.
    pub(crate) bundle: Vec<Self>,
}

/// An uploaded file.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) part: Part,
    /// Whether the bot uploaded it; users' files are downloaded through their message.
    pub(crate) own: bool,
}

/// A card of CardKit.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) json: Value,
    pub(crate) sequence: i64,
    pub(crate) uuids: HashSet<String>,
    pub(crate) made: Instant,
    /// When the stream was opened; `None` if it is closed.
    pub(crate) streaming: Option<Instant>,
    /// Whether the platform closed the stream and has not reported it yet.
    pub(crate) expired: bool,
    /// The message that shows it.
    pub(crate) message: Option<String>,
}

impl Card {
    pub(crate) fn new(json: Value, now: Instant) -> Self {
        let mut card = Self {
            json,
            sequence: 0,
            uuids: HashSet::new(),
            made: now,
            streaming: None,
            expired: false,
            message: None,
        };
        card.follow(now);
        card
    }

    /// Opens or closes the stream according to the card's settings.
    pub(crate) fn follow(&mut self, now: Instant) {
        let on = self.json.pointer("/config/streaming_mode") == Some(&json!(true));
        self.streaming = on.then(|| self.streaming.unwrap_or(now));
        self.expired &= !on;
    }

    pub(crate) fn expire(&mut self) {
        self.expired |= self.streaming.take().is_some();
        if let Some(config) = self.json.get_mut("config").and_then(Value::as_object_mut) {
            config.insert("streaming_mode".to_owned(), false.into());
        }
    }

    /// Returns whether the stream is open.
    pub(crate) fn grows(&self, now: Instant) -> bool {
        self.streaming.is_some_and(|since| now < since + STREAM)
    }
}
