//! The local channel: the web page and the terminal. The "platform" is this process: rooms with a
//! transcript, which readers follow.
//!
//! A room is memory only. State that must survive is in the inbox, the outbox and the thread, from which a
//! room's transcript is made again.

mod follow;
mod inline;
mod reply;
mod room;

pub use follow::TranscriptChange;
pub use inline::download as write_inline;
pub use room::{From, TranscriptLine};
use room::{LocalRoom, TranscriptReader};

use crate::{
    Shared,
    bus::{Inbox, conceal},
};
use pudu_channels::{
    AcceptError, Accepted, Address, Attachment, BoxFuture, Channel, ChannelError, ChannelLimits, Check,
    EventKey, EventSink, Health, HealthCell, Inbound, InboundKind, LiveReply, OutFile, ReplyStore,
    ReplyTarget, RunOptions, SendError, Sender,
};
use pudu_client::base::MessageId;
use pudu_kit::clock;
use pudu_texts::Language;
use serde_json::Value;
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use tokio_util::sync::CancellationToken;

/// The account's name: one that no account of the configuration has.
pub use pudu_config::LOCAL as ACCOUNT;

/// Id of the person who uses the page and the terminal.
pub const PERSON: &str = "local";
/// Maximum number of rooms kept; those without a reader go first.
const ROOMS: usize = 512;

/// Message of a person.
#[derive(Debug, Default)]
pub struct LocalMessage {
    /// The text.
    pub text: String,
    /// Images that come along: the handle of each is a `data:` URL, so that they are stored with the event.
    pub images: Vec<Attachment>,
    /// Options of the run that answers.
    pub options: RunOptions,
}

impl std::convert::From<&str> for LocalMessage {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// The local channel.
pub struct LocalChannel {
    inbox: Inbox,
    health: HealthCell,
    rooms: Mutex<HashMap<String, Arc<LocalRoom>>>,
}

impl LocalChannel {
    /// Creates a channel whose messages go to this inbox.
    pub fn new(inbox: Inbox) -> Self {
        Self { inbox, health: HealthCell::default(), rooms: Mutex::default() }
    }

    /// Takes a person's message in a room. A second call with the same `key` says nothing twice.
    pub async fn say(
        &self,
        chat: &str,
        key: &str,
        language: Language,
        said: LocalMessage,
    ) -> Result<Accepted, AcceptError> {
        let id = MessageId::fresh().to_string();
        let LocalMessage { text, images: attachments, options } = said;
        // The page does not show a secret that is typed there either.
        let shown = conceal(&text).map(|concealed| concealed.shown);
        let line = TranscriptLine::by_person(id.clone(), shown.as_ref().unwrap_or(&text));
        let kind = InboundKind::Message { text, attachments, album: None };
        let hint = (options != RunOptions::default()).then(|| serde_json::to_value(options).ok()).flatten();
        let kept = self.accept(chat, key, language, &id, hint, kind).await?;
        if kept == Accepted::New {
            self.room(chat).put(line);
        }
        Ok(kept)
    }

    /// Takes a press of a button below a line.
    pub async fn press(
        &self,
        chat: &str,
        key: &str,
        language: Language,
        line: &str,
        action: &str,
    ) -> Result<Accepted, AcceptError> {
        let kind = InboundKind::Press { action: action.to_owned() };
        self.accept(chat, key, language, line, None, kind).await
    }

    async fn accept(
        &self,
        chat: &str,
        key: &str,
        language: Language,
        message: &str,
        hint: Option<Value>,
        kind: InboundKind,
    ) -> Result<Accepted, AcceptError> {
        let inbound = Inbound {
            key: EventKey(format!("{chat}:{key}")),
            address: Address { account: ACCOUNT.to_owned(), chat: chat.to_owned(), topic: None },
            private: true,
            message: message.to_owned(),
            reply_to: None,
            sender: Sender {
                id: PERSON.to_owned(),
                name: language.you().to_owned(),
                language: Some(language.tag().to_owned()),
            },
            addressed: true,
            at: clock::now(),
            pointed: Vec::new(),
            hint,
            kind,
        };
        let kept = self.inbox.accept(inbound).await?;
        self.health.event(clock::now());
        Ok(kept)
    }

    /// Returns a room; makes it if it is not there.
    pub fn room(&self, chat: &str) -> Arc<LocalRoom> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get(chat) {
            return room.clone();
        }
        if rooms.len() >= ROOMS {
            // A room with a reader, or with a growing reply, is held by them as well.
            rooms.retain(|_, room| Arc::strong_count(room) > 1 || room.read());
        }
        let room = Arc::new(LocalRoom::default());
        rooms.insert(chat.to_owned(), room.clone());
        room
    }

    /// Returns a file that came with a line, if room, line and file are there.
    pub fn file(&self, chat: &str, line: &str, index: usize) -> Option<OutFile> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(chat)?.file(line, index)
    }

    /// Returns the key of a room's conversation.
    pub fn conversation(chat: &str) -> String {
        Address { account: ACCOUNT.to_owned(), chat: chat.to_owned(), topic: None }.key()
    }
}

/// Returns the language of the page and the terminal: the configured one, or else the person's.
pub fn language(shared: &Shared, person: Option<Language>) -> Language {
    let configured = shared.accounts.get(ACCOUNT).and_then(|account| account.policy().language);
    configured.or(person).unwrap_or_default()
}

impl Channel for LocalChannel {
    fn account(&self) -> &str {
        ACCOUNT
    }

    fn platform(&self) -> &'static str {
        ACCOUNT
    }

    fn check<'a>(&'a self) -> BoxFuture<'a, Vec<Check>> {
        // There is nothing that could be missing.
        Box::pin(async { Vec::new() })
    }

    fn limits(&self) -> ChannelLimits {
        ChannelLimits { download: u64::MAX, upload: u64::MAX, threads: false }
    }

    fn health(&self) -> Health {
        self.health.get()
    }

    fn listen<'a>(
        &'a self,
        _intake: &'a dyn EventSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            self.health.ready();
            stop.cancelled().await;
            self.health.stopped();
            Ok(())
        })
    }

    fn run_options(&self, hint: Option<&Value>) -> RunOptions {
        hint.and_then(|hint| serde_json::from_value(hint.clone()).ok()).unwrap_or_default()
    }

    fn open_reply(&self, reply_target: ReplyTarget, reply_store: Box<dyn ReplyStore>) -> Box<dyn LiveReply> {
        let room = self.room(&reply_target.address.chat);
        Box::new(reply::LocalReply::new(room, reply_target.saved, reply_store))
    }

    fn acknowledge<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.room(&address.chat).seen(message);
        Box::pin(std::future::ready(Ok(())))
    }

    /// The transcript never had it.
    fn forget<'a>(&'a self, _: &'a Address, _: &'a str) -> BoxFuture<'a, Result<bool, SendError>> {
        Box::pin(std::future::ready(Ok(true)))
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        to: &'a Path,
        limit: u64,
    ) -> BoxFuture<'a, Result<u64, SendError>> {
        Box::pin(inline::download(attachment, to, limit))
    }
}
