//! A fake Telegram in memory: chats with messages, Telegram's responses to edits, and a crash at any step.

use crate::{
    BoxFuture, Choice, KnownMessage, ReplyHandle, ReplyStore, ReplyStoreError, ReplyTarget,
    reply::PlatformReply,
    telegram::{
        api::{SentMessage, TelegramApi, TelegramCall, TelegramText, Thread},
        chat_client::{TelegramAccountState, TelegramChatClient},
        chats::Chats,
        facts::{TelegramCase, TelegramError},
        messages::TelegramMessages,
    },
    transport::CallError,
};
use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;

/// Side of a step on which the process crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// A message as users see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VisibleMessage {
    pub(super) body: String,
    pub(super) buttons: Vec<Choice>,
    pub(super) thread: Thread,
}

/// Fault of the next call of a kind.
pub(super) enum PlannedFault {
    /// The call is refused.
    Fails(TelegramError),
    /// The call succeeds, but its response is lost.
    Lost,
}

/// Returns whether a fault concerns a call.
type Concerns = fn(&TelegramCall) -> bool;

#[derive(Default)]
pub(super) struct World {
    next: i64,
    /// Chat and message of the bot's own messages, by number.
    pub(super) own: BTreeMap<i64, (i64, VisibleMessage)>,
    known: Vec<KnownMessage>,
    pub(super) saved: Option<ReplyHandle>,
    /// Calls and saves, in order.
    pub(super) log: Vec<String>,
    pub(super) typed: usize,
    pub(super) faults: VecDeque<(Concerns, PlannedFault)>,
    /// Calls and saves so far.
    pub(super) steps: usize,
    pub(super) plug: Option<(usize, Side)>,
    /// Number of messages that other users write before each of the bot's.
    pub(super) noise: i64,
}

#[derive(Clone, Default)]
pub(super) struct FakeTelegram {
    pub(super) world: Arc<Mutex<World>>,
    crashed: Arc<Notify>,
}

impl FakeTelegram {
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.world.lock().unwrap())
    }

    /// Adds a user's message and returns its number.
    pub(super) fn say(&self, chat: i64) -> i64 {
        self.with(|world| world.say(chat, true))
    }

    /// Opens a reply in a process that has just started.
    pub(super) fn open(&self, target: &ReplyTarget) -> PlatformReply<TelegramMessages> {
        self.open_in(&Arc::default(), target)
    }

    /// Opens a reply in a process shared with other replies.
    pub(super) fn open_in(
        &self,
        chats: &Arc<Chats>,
        target: &ReplyTarget,
    ) -> PlatformReply<TelegramMessages> {
        let state = TelegramAccountState {
            api: Arc::new(self.clone()),
            pacer: Arc::default(),
            chats: Arc::clone(chats),
            transport: crate::transport::AccountTransport::new().unwrap(),
        };
        let chat_client =
            TelegramChatClient::new(state, target.address.chat.parse().unwrap(), target.private);
        let saved = self.with(|world| world.saved.clone());
        let target = ReplyTarget { saved, ..target.clone() };
        PlatformReply::open(TelegramMessages::new(chat_client, &target), &target, Box::new(self.clone()))
    }

    /// Runs until the end or the crash. Returns whether the end was reached.
    pub(super) async fn run(&self, process: impl Future<Output = ()>) -> bool {
        tokio::select! {
            () = process => true,
            () = self.crashed.notified() => false,
        }
    }

    /// Returns the bot's messages in a chat, oldest first.
    pub(super) fn seen(&self, chat: i64) -> Vec<VisibleMessage> {
        self.with(|world| {
            let here = world.own.values().filter(|(place, _)| *place == chat);
            here.map(|(_, seen)| seen.clone()).collect()
        })
    }

    pub(super) fn bodies(&self, chat: i64) -> Vec<String> {
        self.seen(chat).into_iter().map(|seen| seen.body).collect()
    }

    /// Deletes all of the bot's messages.
    pub(super) fn wipe(&self) {
        self.with(|world| world.own.clear());
    }

    async fn step<T>(&self, effect: impl FnOnce(&mut World) -> T) -> T {
        let (done, crash) = self.with(|world| {
            world.steps += 1;
            match world.plug {
                Some((step, Side::Before)) if step == world.steps => (None, true),
                Some((step, Side::After)) if step == world.steps => (Some(effect(world)), true),
                _ => (Some(effect(world)), false),
            }
        });
        // Other tasks run while the response is pending.
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        match done {
            Some(done) if !crash => done,
            _ => {
                self.crashed.notify_one();
                pending().await
            }
        }
    }
}

impl World {
    fn say(&mut self, chat: i64, known: bool) -> i64 {
        self.next += 1;
        if known {
            self.known.push(KnownMessage { chat: chat.to_string(), message: self.next.to_string() });
        }
        self.next
    }

    fn save(&mut self, handle: &ReplyHandle) {
        for message in &handle.messages {
            let location = message.parse().ok().and_then(|id: i64| self.own.get(&id));
            if let Some((chat, _)) = location {
                self.known.push(KnownMessage { chat: chat.to_string(), message: message.clone() });
            }
        }
        self.log.push(format!("save {}", handle.state["parts"]));
        self.saved = Some(handle.clone());
    }

    /// Returns the planned fault of a call.
    fn fault(&mut self, call: &TelegramCall) -> Option<PlannedFault> {
        let hit = self.faults.iter().position(|(concerns, _)| concerns(call))?;
        self.faults.remove(hit).map(|(_, fault)| fault)
    }

    /// Responds to a call without any effect.
    fn meets(&mut self, call: &TelegramCall) -> Result<SentMessage, TelegramError> {
        match self.fault(call) {
            Some(PlannedFault::Fails(error)) => Err(error),
            _ => Ok(SentMessage::default()),
        }
    }

    fn answer(&mut self, chat: i64, call: &TelegramCall) -> Result<SentMessage, TelegramError> {
        self.log.push(render_call(call));
        match self.fault(call) {
            Some(PlannedFault::Fails(error)) => Err(error),
            Some(PlannedFault::Lost) => {
                let _ = self.effect(chat, call);
                Err(CallError::Unknown("the call timed out".into()))
            }
            None => self.effect(chat, call),
        }
    }

    fn effect(&mut self, chat: i64, call: &TelegramCall) -> Result<SentMessage, TelegramError> {
        match call {
            TelegramCall::Send { to, text } => Ok(self.post(chat, *to, text.clone())),
            TelegramCall::Upload { to, file, photo } => {
                let kind = if *photo { "photo" } else { "file" };
                let body = format!("{kind}:{}", file.name);
                Ok(self.post(chat, *to, TelegramText { body, ..TelegramText::default() }))
            }
            TelegramCall::Edit { id, text } => self.edit(chat, *id, text),
            TelegramCall::Delete { id } => {
                self.find(chat, *id)?;
                self.own.remove(id);
                Ok(SentMessage::default())
            }
            TelegramCall::Typing { .. } | TelegramCall::Seen { .. } => Ok(SentMessage::default()),
        }
    }

    fn post(&mut self, chat: i64, thread: Thread, text: TelegramText) -> SentMessage {
        for n in 0..self.noise {
            // Some users write in this chat and some elsewhere; not every message has been received.
            self.say(if n % 2 == 0 { 900 } else { chat }, n % 3 != 0);
        }
        self.next += 1;
        let id = self.next;
        self.own.insert(id, (chat, VisibleMessage { body: text.body, buttons: text.buttons, thread }));
        SentMessage { id, thread }
    }

    fn edit(&mut self, chat: i64, id: i64, text: &TelegramText) -> Result<SentMessage, TelegramError> {
        let seen = self.find(chat, id)?;
        if seen.body.starts_with("file:") || seen.body.starts_with("photo:") {
            return Err(CallError::Special(TelegramCase::Foreign));
        }
        if (&seen.body, &seen.buttons) == (&text.body, &text.buttons) {
            return Err(CallError::Special(TelegramCase::NotModified));
        }
        seen.body.clone_from(&text.body);
        seen.buttons.clone_from(&text.buttons);
        Ok(SentMessage { id, thread: seen.thread })
    }

    fn find(&mut self, chat: i64, id: i64) -> Result<&mut VisibleMessage, TelegramError> {
        match self.own.get_mut(&id) {
            Some((place, seen)) if *place == chat => Ok(seen),
            _ => Err(CallError::Gone("gone".into())),
        }
    }
}

/// Returns a call as a line of the log.
fn render_call(call: &TelegramCall) -> String {
    match call {
        TelegramCall::Send { text, .. } => format!("send {}", text.body),
        TelegramCall::Edit { id, text } => format!("edit {id} {}", text.body),
        TelegramCall::Delete { id } => format!("delete {id}"),
        TelegramCall::Upload { file, photo, .. } => format!("upload {} {photo}", file.name),
        TelegramCall::Typing { .. } | TelegramCall::Seen { .. } => String::new(),
    }
}

impl TelegramApi for FakeTelegram {
    fn call<'a>(
        &'a self,
        chat: i64,
        call: &'a TelegramCall,
    ) -> BoxFuture<'a, Result<SentMessage, TelegramError>> {
        Box::pin(async move {
            if let TelegramCall::Typing { .. } = call {
                return self.with(|world| {
                    world.typed += 1;
                    world.meets(call)
                });
            }
            self.step(|world| world.answer(chat, call)).await
        })
    }
}

impl ReplyStore for FakeTelegram {
    fn save<'a>(&'a self, handle: &'a ReplyHandle) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        Box::pin(async move {
            self.step(|world| world.save(handle)).await;
            Ok(())
        })
    }

    fn known_messages<'a>(
        &'a self,
        _since: i64,
    ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(async move { Ok(self.with(|world| world.known.clone())) })
    }
}
