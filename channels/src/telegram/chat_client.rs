//! Calls for one chat: within its rate limits, and redirected when a group becomes a supergroup.

use super::{
    api::{SentMessage, TelegramApi, TelegramCall},
    chats::Chats,
    facts::{TelegramCase, TelegramError},
};
use crate::{
    pace::Pacer,
    recovery::Recovery,
    transport::{AccountTransport, CallError, KeyedLock},
};
use std::{sync::Arc, time::Duration};

/// Minimum interval between two updates of an unfinished reply in a private chat.
const PRIVATE: Duration = Duration::from_secs(1);
/// Minimum interval in a group, where Telegram accepts about twenty messages a minute.
const GROUP: Duration = Duration::from_secs(3);

/// State shared by all replies of one bot.
#[derive(Clone)]
pub(super) struct TelegramAccountState {
    pub(super) api: Arc<dyn TelegramApi>,
    pub(super) pacer: Arc<Pacer<i64>>,
    pub(super) chats: Arc<Chats>,
    pub(super) transport: AccountTransport,
}

/// Calls of one bot for one chat.
#[derive(Clone)]
pub(super) struct TelegramChatClient {
    state: TelegramAccountState,
    pub(super) chat: i64,
    interval: Duration,
}

impl TelegramChatClient {
    pub(super) fn new(state: TelegramAccountState, chat: i64, private: bool) -> Self {
        Self { state, chat, interval: if private { PRIVATE } else { GROUP } }
    }

    /// Returns the recovery state of calls that write.
    pub(super) fn recovery(&self) -> Recovery {
        self.state.transport.writes.clone()
    }

    /// Waits until an unfinished view may be shown.
    pub(super) async fn ready(&self) {
        self.state.pacer.ready(&self.chat, self.interval).await;
    }

    /// Acquires the lock for sending.
    pub(super) async fn lock_chat(&self) -> Option<KeyedLock> {
        Some(self.state.chats.locks.lock(&self.chat).await)
    }

    /// Returns the newest message seen in the chat's sequence.
    pub(super) fn newest(&self) -> Option<i64> {
        self.state.chats.newest(self.chat)
    }

    /// Records a message in the chat's sequence.
    pub(super) fn record_seen(&self, id: i64) {
        self.state.chats.record_seen(self.chat, id);
    }

    /// Makes a call. Fails while the chat has to wait.
    pub(super) async fn call(&mut self, call: &TelegramCall) -> Result<SentMessage, TelegramError> {
        match self.once(call).await {
            Err(CallError::Special(TelegramCase::Migrated(chat))) if chat != self.chat => {
                tracing::info!(from = self.chat, to = chat, "followed group that became a supergroup");
                self.chat = chat;
                self.once(call).await
            }
            result => result,
        }
    }

    /// Fails while the chat has to wait, so that the caller stores nothing for a call that cannot be made.
    pub(super) fn check_rate_limit(&self) -> Result<(), TelegramError> {
        self.state.pacer.held(&self.chat).map_or(Ok(()), |left| Err(CallError::Wait(left)))
    }

    async fn once(&self, call: &TelegramCall) -> Result<SentMessage, TelegramError> {
        let TelegramAccountState { api, pacer, chats, transport } = &self.state;
        self.check_rate_limit()?;
        if matches!(call, TelegramCall::Send { .. } | TelegramCall::Edit { .. } | TelegramCall::Upload { .. })
        {
            pacer.spend(&self.chat, self.interval);
        }
        let result = transport.note(call.effect(), api.call(self.chat, call).await);
        match &result {
            Ok(posted) if posted.id > 0 => chats.record_seen(self.chat, posted.id),
            Err(CallError::Wait(after)) => pacer.hold(&self.chat, *after),
            _ => {}
        }
        result
    }
}
