//! What can be seen: by a person in a chat, and by a test on the server.

use super::{
    entity::Entity,
    types::{Author, Button, Chat, ChatId, File, Message, MessageId, Shown},
    world::{Press, World},
};
use crate::Call;
use serde::Serialize;
use std::fmt;
use tokio::time::Instant;

/// A message as a person sees it now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// Its number in the chat.
    pub id: MessageId,
    /// Who wrote it.
    pub from: Author,
    /// Its text, or the caption of its file.
    pub text: String,
    /// What in the text is bold, a link, a command, …
    pub entities: Vec<Entity>,
    /// The buttons under it, by rows.
    pub buttons: Vec<Vec<Button>>,
    /// The file it carries.
    pub file: Option<File>,
    /// The message it replies to.
    pub reply_to: Option<MessageId>,
    /// Its topic in a forum.
    pub topic: Option<MessageId>,
    /// Whether it says "edited".
    pub edited: bool,
    /// The emoji that the bot gave it.
    pub reactions: Vec<String>,
    /// Whether the preview of its links is off.
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

    /// What stands in a chat, in order; deleted messages and the platform's own are not there.
    #[must_use]
    pub fn transcript(&self, chat: ChatId) -> Vec<Seen> {
        let messages = self.chat(chat).into_iter().flat_map(|chat| chat.messages.values());
        messages.filter(|message| !message.deleted && message.service.is_none()).map(seen).collect()
    }

    /// The bot's messages in a chat, in order.
    #[must_use]
    pub fn answers(&self, chat: ChatId) -> Vec<Seen> {
        self.transcript(chat).into_iter().filter(|message| message.from == Author::Bot).collect()
    }

    /// The current text of the bot's last message in a chat.
    #[must_use]
    pub fn last_answer(&self, chat: ChatId) -> Option<&str> {
        let mut newest_first = self.chat(chat)?.messages.values().rev();
        let last = newest_first.find(|message| !message.deleted && message.from == Author::Bot)?;
        Some(&last.body.text)
    }

    /// All texts that a message has shown, in order, also if it is deleted by now.
    #[must_use]
    pub fn history(&self, chat: ChatId, message: MessageId) -> Vec<Shown> {
        let message = self.chat(chat).and_then(|chat| chat.messages.get(&message));
        message.map(|message| message.shown.clone()).unwrap_or_default()
    }

    /// The draft that a chat shows now.
    #[must_use]
    pub fn draft(&self, chat: ChatId) -> Option<String> {
        let draft = self.chat(chat)?.draft.as_ref()?;
        (Instant::now() < draft.until).then(|| draft.text.clone())
    }

    /// All texts that drafts have shown in a chat, in order.
    #[must_use]
    pub fn drafts(&self, chat: ChatId) -> Vec<Shown> {
        self.chat(chat).map(|chat| chat.drafts.clone()).unwrap_or_default()
    }

    /// What the bot is shown to be doing (`typing`), until it fades.
    #[must_use]
    pub fn action(&self, chat: ChatId) -> Option<String> {
        let typing = self.chat(chat)?.typing.as_ref()?;
        (Instant::now() < typing.until).then(|| typing.action.clone())
    }

    /// The calls that were kept, oldest first.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.world.books.calls.all()
    }

    /// How often a method was called, by its documented name.
    #[must_use]
    pub fn count(&self, method: &str) -> u64 {
        self.world.books.calls.count(method)
    }

    /// Updates that the bot has not confirmed.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.world.updates.waiting()
    }

    /// Buttons pressed, oldest first, with the bot's answers.
    #[must_use]
    pub fn presses(&self) -> &[Press] {
        &self.world.presses
    }

    /// The bytes of a file that a message carries.
    #[must_use]
    pub fn bytes(&self, file: &File) -> Option<bytes::Bytes> {
        self.world.files.get(&file.id).map(|file| file.bytes.clone())
    }
}

/// For the words of a failed test: every chat, and the last calls.
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
