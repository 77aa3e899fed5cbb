//! The local channel: the web page and the terminal. The "platform" is this process: rooms with a
//! transcript, which readers follow.
//!
//! A room is memory only. What must survive is in the inbox, the outbox and the thread, from which a
//! room's transcript is made again.

mod follow;
mod reply;
mod room;

pub(crate) use follow::TranscriptChange;
pub(crate) use room::{From, TranscriptLine};
use room::{LocalRoom, TranscriptReader};

use crate::{bus::Inbox, clock, dispatch::Shared};
use pudu_channels::{
    AcceptError, Accepted, Address, Attachment, BoxFuture, Channel, ChannelError, ChannelLimits, Check,
    EventKey, EventSink, Health, HealthCell, Inbound, InboundKind, LiveReply, OutFile, ReplyStore,
    ReplyTarget, SendError, Sender,
};
use pudu_client::base::MessageId;
use pudu_texts::Language;
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use tokio_util::sync::CancellationToken;

/// The account's name: one that no account of the configuration has.
pub(crate) use crate::config::LOCAL as ACCOUNT;
/// So many rooms are kept; those that nobody reads go first.
const ROOMS: usize = 512;

/// The local channel.
pub(crate) struct LocalChannel {
    inbox: Inbox,
    health: HealthCell,
    rooms: Mutex<HashMap<String, Arc<LocalRoom>>>,
}

impl LocalChannel {
    pub(crate) fn new(inbox: Inbox) -> Self {
        Self { inbox, health: HealthCell::default(), rooms: Mutex::default() }
    }

    /// Takes what somebody says in a room. A second call with the same `key` says nothing twice.
    pub(crate) async fn say(
        &self,
        chat: &str,
        key: &str,
        language: Language,
        text: &str,
    ) -> Result<Accepted, AcceptError> {
        let id = MessageId::fresh().to_string();
        let kind = InboundKind::Message { text: text.to_owned(), attachments: Vec::new(), album: None };
        let kept = self.accept(chat, key, language, &id, kind).await?;
        if kept == Accepted::New {
            self.room(chat).put(TranscriptLine::said(id, text));
        }
        Ok(kept)
    }

    /// Takes a press of a button below a line.
    pub(crate) async fn press(
        &self,
        chat: &str,
        key: &str,
        language: Language,
        line: &str,
        action: &str,
    ) -> Result<Accepted, AcceptError> {
        self.accept(chat, key, language, line, InboundKind::Press { action: action.to_owned() }).await
    }

    async fn accept(
        &self,
        chat: &str,
        key: &str,
        language: Language,
        message: &str,
        kind: InboundKind,
    ) -> Result<Accepted, AcceptError> {
        let inbound = Inbound {
            key: EventKey(format!("{chat}:{key}")),
            address: Address { account: ACCOUNT.to_owned(), chat: chat.to_owned(), topic: None },
            private: true,
            message: message.to_owned(),
            reply_to: None,
            sender: Sender {
                id: "local".to_owned(),
                name: language.you().to_owned(),
                language: Some(language.tag().to_owned()),
            },
            addressed: true,
            at: clock::now(),
            hint: None,
            kind,
        };
        let kept = self.inbox.accept(inbound).await?;
        self.health.event(clock::now());
        Ok(kept)
    }

    /// Returns a room; makes it if it is not there.
    pub(crate) fn room(&self, chat: &str) -> Arc<LocalRoom> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get(chat) {
            return room.clone();
        }
        if rooms.len() >= ROOMS {
            // One that somebody reads or a reply grows in is held by them as well.
            rooms.retain(|_, room| Arc::strong_count(room) > 1 || room.read());
        }
        let room = Arc::new(LocalRoom::default());
        rooms.insert(chat.to_owned(), room.clone());
        room
    }

    /// Returns a file that came with a line, if room, line and file are there.
    pub(crate) fn file(&self, chat: &str, line: &str, index: usize) -> Option<OutFile> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(chat)?.file(line, index)
    }

    /// Returns the key of a room's conversation.
    pub(crate) fn conversation(chat: &str) -> String {
        Address { account: ACCOUNT.to_owned(), chat: chat.to_owned(), topic: None }.key()
    }
}

/// Returns the language of the page and the terminal: the configured one, or else the person's.
pub(crate) fn language(shared: &Shared, person: Option<Language>) -> Language {
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
        ChannelLimits { download: 0, upload: u64::MAX, threads: false }
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

    fn download<'a>(
        &'a self,
        _attachment: &'a Attachment,
        _to: &'a Path,
        _limit: u64,
    ) -> BoxFuture<'a, Result<u64, SendError>> {
        Box::pin(std::future::ready(Err(SendError::Refused("this chat takes no files".to_owned()))))
    }
}
