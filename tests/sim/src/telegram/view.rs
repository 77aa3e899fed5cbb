//! The visible state: for a user in a chat, and for a test on the server.

use super::{
    entity::Entity,
    types::{Author, Button, Chat, ChatId, File, Message, MessageId, Shown},
    world::{Press, World},
};
use crate::Call;
use serde::Serialize;
use std::fmt;
use tokio::time::Instant;

/// A message as a user sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// Its number in the chat.
    pub id: MessageId,
    /// Who wrote it.
    pub from: Author,
    /// Its text, or the caption of its file.
    pub text: String,
    /// Formatted spans of the text.
    pub entities: Vec<Entity>,
    /// Buttons below it, by rows.
    pub buttons: Vec<Vec<Button>>,
    /// Its file.
    pub file: Option<File>,
    /// The message it replies to.
    pub reply_to: Option<MessageId>,
    /// Its topic in a forum.
    pub topic: Option<MessageId>,
    /// Whether it is marked as edited.
    pub edited: bool,
    /// The bot's reactions.
    pub reactions: Vec<String>,
    /// Whether link previews are disabled.
    pub preview_off: bool,
}

/// The platform at one moment.
pub struct View<'a> {
    pub(crate) world: &'a World,
}

impl View<'_> {
    fn chat(&self, chat: ChatId) -> Option<&Chat> {
        self.world.chats.get(&chat)
    }

    /// Returns the messages of a chat, in order, without deleted and service messages.
    #[must_use]
    pub fn transcript(&self, chat: ChatId) -> Vec<Seen> {
        let messages = self.chat(chat).into_iter().flat_map(|chat| chat.messages.values());
        messages.filter(|message| !message.deleted && message.service.is_none()).map(seen).collect()
    }

    /// Returns the bot's messages in a chat, in order.
    #[must_use]
    pub fn answers(&self, chat: ChatId) -> Vec<Seen> {
        self.transcript(chat).into_iter().filter(|message| message.from == Author::Bot).collect()
    }

    /// Returns the current text of the bot's last message in a chat.
    #[must_use]
    pub fn last_answer(&self, chat: ChatId) -> Option<&str> {
        let mut newest_first = self.chat(chat)?.messages.values().rev();
        let last = newest_first.find(|message| !message.deleted && message.from == Author::Bot)?;
        Some(&last.body.text)
    }

    /// Returns all texts of a message, in order, even if it was deleted.
    #[must_use]
    pub fn history(&self, chat: ChatId, message: MessageId) -> Vec<Shown> {
        let message = self.chat(chat).and_then(|chat| chat.messages.get(&message));
        message.map(|message| message.shown.clone()).unwrap_or_default()
    }

    /// Returns the current draft of a chat.
    #[must_use]
    pub fn draft(&self, chat: ChatId) -> Option<String> {
        let draft = self.chat(chat)?.draft.as_ref()?;
        (Instant::now() < draft.until).then(|| draft.text.clone())
    }

    /// Returns all texts of drafts in a chat, in order.
    #[must_use]
    pub fn drafts(&self, chat: ChatId) -> Vec<Shown> {
        self.chat(chat).map(|chat| chat.drafts.clone()).unwrap_or_default()
    }

    /// Returns the bot's visible action (`typing`), until it expires.
    #[must_use]
    pub fn action(&self, chat: ChatId) -> Option<String> {
        let typing = self.chat(chat)?.typing.as_ref()?;
        (Instant::now() < typing.until).then(|| typing.action.clone())
    }

    /// Returns the stored calls, oldest first.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.world.books.calls.all()
    }

    /// Returns the number of calls of a method, by its documented name.
    #[must_use]
    pub fn count(&self, method: &str) -> u64 {
        self.world.books.calls.count(method)
    }

    /// Returns the number of unconfirmed updates.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.world.updates.waiting()
    }

    /// Returns the pressed buttons with the bot's responses, oldest first.
    #[must_use]
    pub fn presses(&self) -> &[Press] {
        &self.world.presses
    }

    /// Returns the bytes of a message's file.
    #[must_use]
    pub fn bytes(&self, file: &File) -> Option<bytes::Bytes> {
        self.world.files.get(&file.id).map(|file| file.bytes.clone())
    }
}

/// For the message of a failed test: every chat, and the last calls.
impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chat in self.world.chats.values().filter(|chat| !chat.messages.is_empty()).take(20) {
            writeln!(f, "chat {} {:?}:", chat.id, chat.title)?;
            for message in self.transcript(chat.id) {
                writeln!(f, "  #{} {:?}: {:?}", message.id, message.from, message.text)?;
            }
        }
        let mut last: Vec<_> = self.calls().rev().take(10).collect();
        last.reverse();
        for call in last {
            writeln!(f, "call {} {}: {:?}", call.n, call.method, call.outcome)?;
        }
        Ok(())
    }
}

fn seen(message: &Message) -> Seen {
    let body = message.body.clone();
    Seen {
        id: message.id,
        from: message.from,
        text: body.text,
        entities: body.entities,
        buttons: body.buttons,
        file: body.file,
        reply_to: message.reply_to,
        topic: message.thread,
        edited: message.edited.is_some(),
        reactions: message.reactions.clone(),
        preview_off: body.preview_off,
    }
}
