//! Cache of the conversation of each message, filled from observed events and, for all other messages, from the
//! platform.
//!
//! A press contains the id of the message with the button, and a recall the id of the deleted message. Neither reveals
//! whether the chat is private or who wrote the message. Both facts come from the platform's own record of the message,
//! never from the contents of a card. If the look-up fails, nothing is guessed.

use super::{client::FeishuClient, facts::FeishuError};
use crate::{
    pace::Pacer,
    transport::{Cache, KeyedLocks},
};
use pudu_net::reqwest::Method;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for looking up a name. The message waits for it.
const NAME: Duration = Duration::from_millis(1000);
/// Pause between a failed look-up of a name and the next one.
const NAMELESS: Duration = Duration::from_secs(10 * 60);
/// Maximum number of entries in each cache.
const MAX_CACHE_ENTRIES: usize = 4096;

/// Conversation and author of a message.
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
    /// A group with threads under its messages.
    Group,
    /// A group that consists of threads only.
    Topics,
}

/// Location of a message in its chat, as described by the platform. That alone does not determine whether its thread is
/// a separate conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageLocation {
    pub(super) chat: String,
    pub(super) room: ChatKind,
    pub(super) thread: Option<String>,
    /// The first message of the thread or reply chain.
    pub(super) root: Option<String>,
    /// The author's id; `None` for this bot.
    pub(super) sender: Option<String>,
}

/// Bounded caches of messages, chats and names.
#[derive(Default)]
pub(super) struct ChatCache {
    messages: Cache<String, MessageInfo, MAX_CACHE_ENTRIES>,
    rooms: Cache<String, ChatKind, MAX_CACHE_ENTRIES>,
    names: Cache<String, String, MAX_CACHE_ENTRIES>,
    /// Whether a message is part of a conversation with the bot.
    talked: Cache<String, bool, MAX_CACHE_ENTRIES>,
    /// Held after a failed look-up of a name. No names are looked up while it is held.
    nameless: Pacer<()>,
    /// Locks that prevent concurrent look-ups of the same user.
    asks: KeyedLocks<String>,
}

impl ChatCache {
    /// Records a message that was seen or sent.
    pub(super) fn record_seen(&self, message: &str, place: MessageInfo) {
        self.messages.put(message.to_owned(), place);
    }

    /// Returns the conversation and author of a message, if remembered.
    pub(super) fn place(&self, message: &str) -> Option<MessageInfo> {
        self.messages.get(message)
    }

    /// Records the kind of a chat.
    pub(super) fn entered(&self, chat: &str, room: ChatKind) {
        self.rooms.put(chat.to_owned(), room);
    }

    /// Records whether a message is part of a conversation.
    pub(super) fn record_part(&self, message: &str, part: bool) {
        self.talked.put(message.to_owned(), part);
    }

    /// Returns whether a message is part of a conversation, if remembered.
    pub(super) fn has_talked(&self, message: &str) -> Option<bool> {
        self.talked.get(message)
    }

    /// Records a user's name.
    pub(super) fn named(&self, person: &str, name: &str) {
        self.names.put(person.to_owned(), name.to_owned());
    }

    /// Returns a user's name, or a short form of the id.
    pub(super) fn name(&self, person: &str) -> String {
        let short = || person.chars().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect::<String>();
        self.names.get(person).unwrap_or_else(|| format!("user {}", short()))
    }

    /// Returns a user's name. Looks up an unknown name, unless a look-up failed recently. Concurrent callers for the
    /// same user wait for one look-up; other callers do not wait.
    pub(super) async fn ask_name(&self, client: &FeishuClient, person: &str) -> String {
        let unknown = || self.names.get(person).is_none() && self.nameless.held(&()).is_none();
        if unknown() {
            let _asks = self.asks.lock(&person.to_owned()).await;
            if unknown() {
                self.learn_name(client, person).await;
            }
        }
        self.name(person)
    }

    async fn learn_name(&self, client: &FeishuClient, person: &str) {
        match timeout(NAME, look_up_name(client, person)).await {
            Ok(Some(name)) => self.named(person, &name),
            Ok(None) | Err(_) => self.nameless.hold(&(), NAMELESS),
        }
    }

    /// Fetches a message's location from the platform; `None` if the platform does not provide it.
    pub(super) async fn look_up(
        &self,
        client: &FeishuClient,
        message: &str,
    ) -> Result<Option<MessageLocation>, FeishuError> {
        let Some(path) = plain(message).map(|id| format!("im/v1/messages/{id}")) else { return Ok(None) };
        let Some(response) = passed(client.call(Method::GET, &path, None).await)? else { return Ok(None) };
        let Some((chat, sender)) = written(&response, client.app_id()) else { return Ok(None) };
        let Some(room) = self.room(client, &chat).await? else { return Ok(None) };
        let id = |field: &str| response.pointer(field).and_then(Value::as_str).filter(|id| !id.is_empty());
        let thread = id("/items/0/thread_id").map(str::to_owned);
        let root = id("/items/0/root_id").map(str::to_owned);
        Ok(Some(MessageLocation { chat, room, thread, root, sender }))
    }

    async fn room(&self, client: &FeishuClient, chat: &str) -> Result<Option<ChatKind>, FeishuError> {
        if let Some(room) = self.rooms.get(chat) {
            return Ok(Some(room));
        }
        let Some(path) = plain(chat).map(|id| format!("im/v1/chats/{id}")) else { return Ok(None) };
        let Some(response) = passed(client.call(Method::GET, &path, None).await)? else { return Ok(None) };
        let room = match (response["chat_mode"].as_str(), response["group_message_type"].as_str()) {
            (None, _) => return Ok(None),
            (Some("p2p"), _) => ChatKind::Private,
            (Some("group"), form) if form != Some("thread") => ChatKind::Group,
            _ => ChatKind::Topics,
        };
        self.rooms.put(chat.to_owned(), room);
        Ok(Some(room))
    }
}

/// Maps a refused look-up to `None`. A temporary failure remains an error.
fn passed(response: Result<Value, FeishuError>) -> Result<Option<Value>, FeishuError> {
    match response {
        Ok(response) => Ok(Some(response)),
        Err(failure) => {
            tracing::warn!(%failure, "failed to look up the conversation of a message");
            if failure.is_final() { Ok(None) } else { Err(failure) }
        }
    }
}

/// Returns the chat of a message, and its author (`None` for this bot).
fn written(response: &Value, app: &str) -> Option<(String, Option<String>)> {
    let text = |field: &str| response.pointer(field).and_then(Value::as_str);
    let (chat, id) = (text("/items/0/chat_id")?, text("/items/0/sender/id")?);
    match text("/items/0/sender/sender_type")? {
        "user" => Some((chat.to_owned(), Some(id.to_owned()))),
        _ if id == app => Some((chat.to_owned(), None)),
        _ => None,
    }
}

async fn look_up_name(client: &FeishuClient, person: &str) -> Option<String> {
    let path = format!("contact/v3/users/{}?user_id_type=open_id", plain(person)?);
    let response = client.call(Method::GET, &path, None).await;
    let response = response.inspect_err(|error| tracing::debug!(%error, "failed to look up a name"));
    Some(response.ok()?.pointer("/user/name")?.as_str()?.to_owned()).filter(|name| !name.is_empty())
}

/// Returns an id if it is safe in a path: letters, digits, `_` and `-`.
pub(super) fn plain(id: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    ((1..=128).contains(&id.len()) && id.chars().all(fits)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_not_a_path() {
        assert_eq!(plain("om_a-1"), Some("om_a-1"));
        for id in ["", "a/b", "..", "a?b", "ä", &"x".repeat(129)] {
            assert_eq!(plain(id), None, "{id}");
        }
    }
}
