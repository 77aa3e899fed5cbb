//! Cache of the places of messages: from observed events, and from the platform for everything else.
//!
//! A press names the message that contains the button, a recall the deleted message; neither contains whether the chat
//! is private or who wrote the message. That comes from the platform's own record of the message, never from the
//! contents of a card. A place that cannot be looked up is not guessed.

use super::{client::FeishuClient, failure::FeishuError};
use crate::transport::{Cache, KeyedLocks};
use pudu_net::reqwest::Method;
use serde_json::Value;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// Timeout for looking up a name: the message waits for it.
const NAME: Duration = Duration::from_millis(1000);
/// After a name that could not be had none is asked for in this time.
const NAMELESS: Duration = Duration::from_secs(10 * 60);
/// Maximum number of messages, chats and names remembered, each.
const MAX_CACHE_ENTRIES: usize = 4096;

/// Place of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageInfo {
    pub(super) chat: String,
    pub(super) topic: Option<String>,
    pub(super) private: bool,
    /// The author's id; `None` for this bot.
    pub(super) sender: Option<String>,
}

/// Kind of chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChatKind {
    Private,
    /// Threads open under its messages.
    Group,
    /// It consists of threads only.
    Topics,
}

/// Place of a message in its chat, as the platform describes it. Whether its thread is a separate conversation does not
/// follow from that alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageLocation {
    pub(super) chat: String,
    pub(super) room: ChatKind,
    pub(super) thread: Option<String>,
    /// The message that the thread, or a row of answers, is under.
    pub(super) root: Option<String>,
    /// The author's id; `None` for this bot.
    pub(super) sender: Option<String>,
}

/// Cache of messages, chats and names, the newest of each.
pub(super) struct ChatCache {
    messages: Cache<String, MessageInfo>,
    rooms: Cache<String, ChatKind>,
    names: Cache<String, String>,
    /// Whether a message is part of a conversation: addressed to the bot, or inside the conversation.
    talked: Cache<String, bool>,
    /// Until then names are not asked for: the app may not.
    nameless: Mutex<Option<Instant>>,
    /// The right to ask for a person's name.
    asks: KeyedLocks<String>,
}

impl Default for ChatCache {
    fn default() -> Self {
        Self {
            messages: Cache::new(MAX_CACHE_ENTRIES),
            rooms: Cache::new(MAX_CACHE_ENTRIES),
            names: Cache::new(MAX_CACHE_ENTRIES),
            talked: Cache::new(MAX_CACHE_ENTRIES),
            nameless: Mutex::default(),
            asks: KeyedLocks::default(),
        }
    }
}

impl ChatCache {
    /// A message was seen or sent.
    pub(super) fn record_seen(&self, message: &str, place: MessageInfo) {
        self.messages.put(message.to_owned(), place);
    }

    /// Returns the place of a message, if it is remembered.
    pub(super) fn place(&self, message: &str) -> Option<MessageInfo> {
        self.messages.get(message)
    }

    /// Records the kind of a chat.
    pub(super) fn entered(&self, chat: &str, room: ChatKind) {
        self.rooms.put(chat.to_owned(), room);
    }

    /// It was found out whether a message is part of a conversation.
    pub(super) fn record_part(&self, message: &str, part: bool) {
        self.talked.put(message.to_owned(), part);
    }

    /// Returns whether a message is part of a conversation, if that is remembered.
    pub(super) fn has_talked(&self, message: &str) -> Option<bool> {
        self.talked.get(message)
    }

    /// Records a person's name.
    pub(super) fn named(&self, person: &str, name: &str) {
        self.names.put(person.to_owned(), name.to_owned());
    }

    /// Returns a person's name, or a short form of the id.
    pub(super) fn name(&self, person: &str) -> String {
        let short = || person.chars().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect::<String>();
        self.names.get(person).unwrap_or_else(|| format!("user {}", short()))
    }

    /// Returns a person's name; an unknown one is requested if the app may. Concurrent callers for the same person wait
    /// for the same answer; other callers do not wait.
    pub(super) async fn ask_name(&self, client: &FeishuClient, person: &str) -> String {
        let unknown = || self.names.get(person).is_none() && self.may_ask();
        if unknown() {
            let _asks = self.asks.lock(&person.to_owned()).await;
            if unknown() {
                self.learn_name(client, person).await;
            }
        }
        self.name(person)
    }

    fn may_ask(&self) -> bool {
        let nameless = *self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        nameless.is_none_or(|until| until <= Instant::now())
    }

    async fn learn_name(&self, client: &FeishuClient, person: &str) {
        match timeout(NAME, look_up_name(client, person)).await {
            Ok(Some(name)) => self.named(person, &name),
            Ok(None) | Err(_) => {
                let mut nameless = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
                *nameless = Some(Instant::now() + NAMELESS);
            }
        }
    }

    /// Requests a message's place from the platform; `None` if the platform does not provide it.
    pub(super) async fn look_up(
        &self,
        client: &FeishuClient,
        message: &str,
    ) -> Result<Option<MessageLocation>, FeishuError> {
        let Some(path) = plain(message).map(|id| format!("im/v1/messages/{id}")) else { return Ok(None) };
        let Some(told) = passed(client.call(Method::GET, &path, None).await)? else { return Ok(None) };
        let Some((chat, sender)) = written(&told, client.app_id()) else { return Ok(None) };
        let Some(room) = self.room(client, &chat).await? else { return Ok(None) };
        let id = |field: &str| told.pointer(field).and_then(Value::as_str).filter(|id| !id.is_empty());
        let thread = id("/items/0/thread_id").map(str::to_owned);
        let root = id("/items/0/root_id").map(str::to_owned);
        Ok(Some(MessageLocation { chat, room, thread, root, sender }))
    }

    async fn room(&self, client: &FeishuClient, chat: &str) -> Result<Option<ChatKind>, FeishuError> {
        if let Some(room) = self.rooms.get(chat) {
            return Ok(Some(room));
        }
        let Some(path) = plain(chat).map(|id| format!("im/v1/chats/{id}")) else { return Ok(None) };
        let Some(told) = passed(client.call(Method::GET, &path, None).await)? else { return Ok(None) };
        let room = match (told["chat_mode"].as_str(), told["group_message_type"].as_str()) {
            (None, _) => return Ok(None),
            (Some("p2p"), _) => ChatKind::Private,
            (Some("group"), form) if form != Some("thread") => ChatKind::Group,
            _ => ChatKind::Topics,
        };
        self.rooms.put(chat.to_owned(), room);
        Ok(Some(room))
    }
}

/// Maps a look-up that the platform refuses to `None`; one that fails for now stays a failure.
fn passed(told: Result<Value, FeishuError>) -> Result<Option<Value>, FeishuError> {
    match told {
        Ok(told) => Ok(Some(told)),
        Err(failure) => {
            tracing::warn!(%failure, "failed to look up where a message stands");
            if failure.is_final() { Ok(None) } else { Err(failure) }
        }
    }
}

/// Returns the chat of a message, and its author: `None` is this bot.
fn written(told: &Value, app: &str) -> Option<(String, Option<String>)> {
    let text = |field: &str| told.pointer(field).and_then(Value::as_str);
    let (chat, id) = (text("/items/0/chat_id")?, text("/items/0/sender/id")?);
    match text("/items/0/sender/sender_type")? {
        "user" => Some((chat.to_owned(), Some(id.to_owned()))),
        _ if id == app => Some((chat.to_owned(), None)),
        _ => None,
    }
}

async fn look_up_name(client: &FeishuClient, person: &str) -> Option<String> {
    let path = format!("contact/v3/users/{}?user_id_type=open_id", plain(person)?);
    let told = client.call(Method::GET, &path, None).await;
    let told = told.inspect_err(|error| tracing::debug!(%error, "failed to look up a name"));
    Some(told.ok()?.pointer("/user/name")?.as_str()?.to_owned()).filter(|name| !name.is_empty())
}

/// Returns an id that may be part of a path: letters, digits, `_` and `-`.
pub(super) fn plain(id: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    ((1..=128).contains(&id.len()) && id.chars().all(fits)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_path() {
        assert_eq!(plain("om_a-1"), Some("om_a-1"));
        for id in ["", "a/b", "..", "a?b", "ä", &"x".repeat(129)] {
            assert_eq!(plain(id), None, "{id}");
        }
    }
}
