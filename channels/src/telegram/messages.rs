//! The messages of one reply on Telegram, and how to find one that may have been sent.
//!
//! Telegram has no idempotency keys: sending a message again may create a duplicate. An edit, however, can be repeated.
//! A growing reply is therefore first sent as a neutral placeholder. If an intent has no number, [`super::search`]
//! tries to edit the message with each unknown number to show the placeholder. This works for the bot's messages in
//! this chat and fails for anything else. The found message then shows the placeholder, so no text gets into a wrong
//! message, and Telegram's response contains the topic and the message being replied to. A message in the reply store
//! is never touched.
//!
//! A message stays uncertain if more than a few dozen unseen messages of other users follow it, or if Telegram
//! processes it only after the search. Drafts (`sendMessageDraft`) are not used: the recorded message is already
//! visible, and a draft would show the same text again below it.

use super::{
    api::{SentMessage, TelegramCall, TelegramText, Thread},
    chat_client::TelegramChatClient,
    facts::{CAPABILITIES, TelegramCase, TelegramError},
    pages::{self, TelegramPage},
    search::{KnownIds, MessageSearch},
    upload::is_picture,
};
use crate::{
    OutFile, ReplyTarget, SendError,
    reply::{
        Capabilities, EditOutcome, MessageDraft, MessageHistory, MessageRef, PlatformMessages, SendIntent,
        Typing,
    },
    transport::{CallError, KeyedLock},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Interval of the typing indicator. Telegram shows it for five seconds.
const TYPING: Duration = Duration::from_millis(4500);

/// The messages of one reply.
pub(super) struct TelegramMessages {
    pub(super) chat_client: TelegramChatClient,
    thread: Thread,
    /// The chat in which the reply began.
    home: i64,
    /// The message being replied to. The reply's messages are newer.
    answered: Option<i64>,
    /// An interrupted search, and the key of its intent.
    search: Option<(String, MessageSearch)>,
}

/// Record of a sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Number {
    id: i64,
}

impl MessageRef for Number {
    fn id(&self) -> String {
        self.id.to_string()
    }

    fn from_id(id: &str) -> Option<Self> {
        id.parse().ok().map(|id| Self { id })
    }
}

/// Data for finding a message again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Floor {
    /// The newest message known before it was sent. The message has a higher number.
    floor: i64,
}

impl TelegramMessages {
    pub(super) fn new(chat_client: TelegramChatClient, target: &ReplyTarget) -> Self {
        let number = |id: &Option<String>| id.as_deref().and_then(|id| id.parse().ok());
        let answered = number(&target.reply_to);
        let thread = Thread {
            topic: number(&target.address.topic),
            // In a private chat it is obvious which message is answered.
            reply_to: answered.filter(|_| !target.private),
        };
        Self { home: chat_client.chat, chat_client, thread, answered, search: None }
    }

    /// Makes a call with a page's text. Retries without markup if Telegram cannot parse it.
    async fn put(
        &mut self,
        page: &TelegramPage,
        call: impl Fn(TelegramText) -> TelegramCall,
    ) -> Result<SentMessage, TelegramError> {
        match self.chat_client.call(&call(page.text.clone())).await {
            Err(CallError::Special(TelegramCase::Markup(error))) => {
                tracing::warn!(error, "sending message without markup");
                self.chat_client.call(&call(page.plain.clone())).await
            }
            result => result,
        }
    }

    /// Edits a message into the placeholder. Returns `Ok` if it is this reply's, `Foreign` if it belongs to another
    /// reply.
    async fn probe(&mut self, id: i64) -> Result<(), TelegramError> {
        for which in 0..pages::SIGNS.len() {
            match self.chat_client.call(&TelegramCall::Edit { id, text: pages::sign(which) }).await {
                // It already shows this placeholder; the edit to the other one returns its thread.
                Err(CallError::Special(TelegramCase::NotModified)) => {}
                Ok(posted) if self.fits(posted.thread) => return Ok(()),
                Ok(_) => return Err(CallError::Special(TelegramCase::Foreign)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns whether a message's thread matches this reply. The message being replied to may have been deleted by
    /// now.
    fn fits(&self, found: Thread) -> bool {
        let answers_ours = found.reply_to.is_none() || found.reply_to == self.thread.reply_to;
        found.topic == self.thread.topic && answers_ours
    }

    async fn known_ids(&self, since: i64, history: &MessageHistory<'_>) -> Result<KnownIds, SendError> {
        let known_messages = history.known_messages(since).await?;
        let own = history.own.iter().filter_map(|id| id.parse().ok());
        Ok(KnownIds::new(self.chat_client.chat, &known_messages, own))
    }
}

impl PlatformMessages for TelegramMessages {
    type Page = TelegramPage;
    type Ref = Number;
    type DedupKey = Floor;

    const CAPABILITIES: Capabilities = CAPABILITIES;

    fn page(&self, draft: &MessageDraft) -> TelegramPage {
        TelegramPage::new(draft)
    }

    fn overfull(&self, page: &TelegramPage) -> bool {
        page.length() > Self::CAPABILITIES.text.max
    }

    fn first(&self, page: &TelegramPage) -> TelegramPage {
        if page.neutral { page.clone() } else { page.sign() }
    }

    fn recovery(&self) -> Option<crate::recovery::Recovery> {
        Some(self.chat_client.recovery())
    }

    async fn ready(&mut self) {
        self.chat_client.ready().await;
    }

    fn check_rate_limit(&self) -> Result<(), CallError> {
        Ok(self.chat_client.check_rate_limit()?)
    }

    async fn lock_chat(&self) -> Option<KeyedLock> {
        self.chat_client.lock_chat().await
    }

    async fn dedup_key(
        &mut self,
        _before: Option<Floor>,
        since: i64,
        history: &MessageHistory<'_>,
    ) -> Result<Floor, SendError> {
        let newest = match self.chat_client.newest() {
            Some(newest) => newest,
            None => self.known_ids(since, history).await?.newest(),
        };
        self.chat_client.record_seen(newest);
        Ok(Floor { floor: newest.max(self.answered.unwrap_or(0)) })
    }

    async fn find(
        &mut self,
        intent: &SendIntent<Floor>,
        history: &MessageHistory<'_>,
    ) -> Result<Option<Number>, SendError> {
        let known = self.known_ids(intent.since, history).await?;
        let interrupted = self.search.take().filter(|(key, _)| *key == intent.key);
        let mut search =
            interrupted.map_or_else(|| MessageSearch::above(intent.dedup_key.floor), |(_, search)| search);
        while let Some(id) = search.candidate(&known) {
            match self.probe(id).await {
                Ok(()) => return Ok(Some(Number { id })),
                Err(CallError::Gone(_)) => search.missing(),
                Err(CallError::Special(TelegramCase::Foreign)) => search.foreign(),
                Err(error) => {
                    self.search = Some((intent.key.clone(), search));
                    return Err(error.into());
                }
            }
        }
        Ok(None)
    }

    /// Converts records that are older than the format shared by all platforms: Telegram's contained `floor` directly
    /// in the intent and the chat at the top level.
    fn upgrade(mut state: Value) -> Value {
        if let Some(chat) = state.get("chat").cloned() {
            state["memo"] = json!({"chat": chat});
        }
        let parts = state.get_mut("parts").and_then(Value::as_array_mut);
        for intent in parts.into_iter().flatten().filter_map(|part| part.get_mut("intended")) {
            if let Some(floor) = intent.get("floor").cloned() {
                intent["mark"] = json!({"floor": floor});
                intent["key"] = "before".into();
            }
        }
        state
    }

    async fn post(&mut self, intent: &SendIntent<Floor>, page: &TelegramPage) -> Result<Number, CallError> {
        let to = Thread { reply_to: self.thread.reply_to.filter(|_| intent.n == 0), ..self.thread };
        let posted = self.put(page, |text| TelegramCall::Send { to, text }).await?;
        Ok(Number { id: posted.id })
    }

    async fn edit(&mut self, sent: &mut Number, page: &TelegramPage) -> Result<EditOutcome, CallError> {
        let id = sent.id;
        match self.put(page, |text| TelegramCall::Edit { id, text }).await {
            Ok(_) | Err(CallError::Special(TelegramCase::NotModified)) => Ok(EditOutcome::Shown),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete(&mut self, sent: &Number) -> Result<(), CallError> {
        self.chat_client.call(&TelegramCall::Delete { id: sent.id }).await?;
        Ok(())
    }

    /// Uploads a file: a picture as a picture, or as a document if Telegram refuses it. While Telegram is failing, a
    /// typing indicator is sent first as a test, because a file with an unknown outcome is sent only twice.
    async fn upload(&mut self, _key: &str, file: &OutFile, size: u64) -> Result<String, CallError> {
        if self.chat_client.recovery().is_failing() {
            let typing = TelegramCall::Typing { topic: self.thread.topic };
            self.chat_client.call(&typing).await.map_err(TelegramError::before)?;
        }
        let to = Thread { reply_to: None, ..self.thread };
        let upload = |photo| TelegramCall::Upload { to, file: file.clone(), photo };
        if is_picture(file, size) {
            match self.chat_client.call(&upload(true)).await {
                Err(CallError::Refused(why)) => {
                    tracing::debug!(why, "failed to send picture; sending it as a document")
                }
                result => return Ok(result?.id.to_string()),
            }
        }
        Ok(self.chat_client.call(&upload(false)).await?.id.to_string())
    }

    fn typing(&self) -> Option<Typing> {
        let (chat_client, topic) = (self.chat_client.clone(), self.thread.topic);
        Some(Typing::start(TYPING, move || {
            let mut chat_client = chat_client.clone();
            Box::pin(async move {
                // The indicator is optional, and the chat's wait is recorded in any case.
                if let Err(error) = chat_client.call(&TelegramCall::Typing { topic }).await {
                    tracing::debug!(%error, "failed to show typing");
                }
            })
        }))
    }

    fn platform_state(&self) -> Value {
        // A group that became a supergroup has a different id than when the reply began.
        if self.chat_client.chat == self.home { Value::Null } else { json!({"chat": self.chat_client.chat}) }
    }

    fn restore_platform_state(&mut self, memo: &Value) {
        if let Some(chat) = memo.get("chat").and_then(Value::as_i64) {
            self.chat_client.chat = chat;
        }
    }
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
