//! Calls for one chat: kept back while the chat is held, counted, and taken along when the chat moves.

use super::{
    api::{SentMessage, TelegramApi, TelegramCall, TelegramCallError},
    chats::{Chats, TelegramChatLock},
};
use crate::{pace::Pacer, recovery::Recovery};
use std::{sync::Arc, time::Duration};

/// How often an unfinished reply may change in a private chat.
const PRIVATE: Duration = Duration::from_secs(1);
/// How often in a group: Telegram takes about twenty messages a minute there.
const GROUP: Duration = Duration::from_secs(3);

/// State that the replies of one account share.
#[derive(Clone)]
pub(super) struct TelegramAccountState {
    pub(super) api: Arc<dyn TelegramApi>,
    pub(super) pacer: Arc<Pacer<i64>>,
    pub(super) chats: Arc<Chats>,
    pub(super) recovery: Recovery,
}

/// Calls of one account for one chat.
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

    /// Returns what tells when Telegram takes messages again.
    pub(super) fn recovery(&self) -> Recovery {
        self.state.recovery.clone()
    }

    /// Waits until an unfinished view may be shown.
    pub(super) async fn ready(&self) {
        self.state.pacer.ready(&self.chat, self.interval).await;
    }

    /// Waits for the turn to send.
    pub(super) async fn lock_chat(&self) -> TelegramChatLock {
        self.state.chats.turn(self.chat).await
    }

    /// Returns the newest message that was seen in the chat's sequence.
    pub(super) fn newest(&self) -> Option<i64> {
        self.state.chats.newest(self.chat)
    }

    /// A message of the chat's sequence is known.
    pub(super) fn saw(&self, id: i64) {
        self.state.chats.saw(self.chat, id);
    }

    /// Makes a call, unless the chat has to wait.
    pub(super) async fn call(&mut self, call: &TelegramCall) -> Result<SentMessage, TelegramCallError> {
        match self.once(call).await {
            Err(TelegramCallError::Migrated(chat)) if chat != self.chat => {
                tracing::info!(
                    from = self.chat,
                    to = chat,
                    "the group became a supergroup: its replies follow"
                );
                self.chat = chat;
                self.once(call).await
            }
            result => result,
        }
    }

    /// Fails while the chat has to wait: nothing needs to be written down for a call that is not made.
    pub(super) fn check_rate_limit(&self) -> Result<(), TelegramCallError> {
        self.state.pacer.held(&self.chat).map_or(Ok(()), |left| Err(TelegramCallError::Wait(left)))
    }

    async fn once(&self, call: &TelegramCall) -> Result<SentMessage, TelegramCallError> {
        let TelegramAccountState { api, pacer, chats, recovery } = &self.state;
        self.check_rate_limit()?;
        if matches!(call, TelegramCall::Send { .. } | TelegramCall::Edit { .. } | TelegramCall::Upload { .. })
        {
            pacer.spend(&self.chat, self.interval);
        }
        let result = api.call(self.chat, call).await;
        match (call, &result) {
            // A file that cannot be read makes no call.
            (_, Err(TelegramCallError::File(_))) => {}
            (TelegramCall::Typing { .. } | TelegramCall::Seen { .. }, _) => {
                recovery.note_read(&result, TelegramCallError::is_outage)
            }
            _ => recovery.note(&result, TelegramCallError::is_outage),
        }
        match &result {
            Ok(posted) if posted.id > 0 => chats.saw(self.chat, posted.id),
            Err(TelegramCallError::Wait(after)) => pacer.hold(&self.chat, *after),
            _ => {}
        }
        result
    }
}
