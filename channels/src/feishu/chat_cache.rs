//! Cache of where messages stand: from observed events, and from the platform for everything else.
//!
//! A press names the message it was under, a recall names the message that is gone; neither tells whether the
//! chat is private or who wrote. That comes from the platform's own record of the message, never from the
//! contents of a card. A place that cannot be looked up is not guessed.

use super::{client::FeishuClient, failure::FeishuError};
use crate::reply::CallError;
use pudu_net::reqwest::Method;
use serde_json::Value;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout},
};

/// A name may take so long to be looked up: the message waits for it.
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
    /// Threads open under messages of it.
    Group,
    /// All of it is threads.
    Topics,
}

/// How a message stands in its chat, as the platform tells it. Whether its thread is a conversation of its
/// own does not follow from that alone.
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
#[derive(Debug, Default)]
pub(super) struct ChatCache {
    messages: Recent<MessageInfo>,
    rooms: Recent<ChatKind>,
    names: Recent<String>,
    /// Whether a message is part of a conversation: to the bot, or of it.
    talked: Recent<bool>,
    /// Until then names are not asked for: the app may not.
    nameless: Mutex<Option<Instant>>,
    /// The names that are being asked for.
    asked: Mutex<HashMap<String, Weak<OnceCell<()>>>>,
}

impl ChatCache {
    /// A message was seen or sent.
    pub(super) fn saw(&self, message: &str, place: MessageInfo) {
        self.messages.put(message, place);
    }

    /// Returns where a message stands, if that is remembered.
    pub(super) fn place(&self, message: &str) -> Option<MessageInfo> {
        self.messages.get(message)
    }

    /// It was told what sort of chat one is.
    pub(super) fn entered(&self, chat: &str, room: ChatKind) {
        self.rooms.put(chat, room);
    }

    /// It was found out whether a message is part of a conversation.
    pub(super) fn talked(&self, message: &str, part: bool) {
        self.talked.put(message, part);
    }

    /// Returns whether a message is part of a conversation, if that is remembered.
    pub(super) fn has_talked(&self, message: &str) -> Option<bool> {
        self.talked.get(message)
    }

    /// Somebody's name was told.
    pub(super) fn named(&self, person: &str, name: &str) {
        self.names.put(person, name.to_owned());
    }

    /// Returns somebody's name, or a short form of the id.
    pub(super) fn name(&self, person: &str) -> String {
        let short = || person.chars().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect::<String>();
        self.names.get(person).unwrap_or_else(|| format!("user {}", short()))
    }

    /// Returns somebody's name; it is asked for if it is not known and the app may. Who asks for the same
    /// person meanwhile waits for the same answer, and nobody else waits.
    pub(super) async fn ask_name(&self, client: &FeishuClient, person: &str) -> String {
        if self.names.get(person).is_none() && self.may_ask() {
            let question = self.question(person);
            question.get_or_init(|| self.learn_name(client, person)).await;
        }
        self.name(person)
    }

    fn may_ask(&self) -> bool {
        let nameless = *self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        nameless.is_none_or(|until| until <= Instant::now())
    }

    /// Returns the question for a name that is under way, or a new one.
    fn question(&self, person: &str) -> Arc<OnceCell<()>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(question) = asked.get(person).and_then(Weak::upgrade) {
            return question;
        }
        // Those that nobody waits for any more are done.
        asked.retain(|_, question| question.strong_count() > 0);
        let question = Arc::new(OnceCell::new());
        asked.insert(person.to_owned(), Arc::downgrade(&question));
        question
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

    /// Asks the platform where a message stands; `None` if it does not say so.
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
        self.rooms.put(chat, room);
        Ok(Some(room))
    }
}

/// Maps a look-up that the platform refuses to `None`; one that fails for now stays a failure.
fn passed(told: Result<Value, FeishuError>) -> Result<Option<Value>, FeishuError> {
    match told {
        Ok(told) => Ok(Some(told)),
        Err(failure) => {
            tracing::warn!(error = %failure.error, "where a message stands cannot be looked up");
            let refused = matches!(failure.error, CallError::Refused(_) | CallError::Gone);
            if refused { Ok(None) } else { Err(failure) }
        }
    }
}

/// Returns in which chat a message was written, and by whom: `None` is this bot.
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
    let told =
        told.inspect_err(|failure| tracing::debug!(error = %failure.error, "a name cannot be looked up"));
    Some(told.ok()?.pointer("/user/name")?.as_str()?.to_owned()).filter(|name| !name.is_empty())
}

/// Returns an id that may stand in a path: letters, digits, `_` and `-`.
pub(super) fn plain(id: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    ((1..=128).contains(&id.len()) && id.chars().all(fits)).then_some(id)
}

/// A map that forgets what was put in first.
#[derive(Debug)]
struct Recent<V>(Mutex<(HashMap<String, V>, VecDeque<String>)>);

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: Clone> Recent<V> {
    fn get(&self, key: &str) -> Option<V> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.get(key).cloned()
    }

    fn put(&self, key: &str, value: V) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (map, order) = &mut *kept;
        if map.insert(key.to_owned(), value).is_none() {
            order.push_back(key.to_owned());
        }
        if map.len() > MAX_CACHE_ENTRIES
            && let Some(oldest) = order.pop_front()
        {
            map.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let recent = Recent::default();
        for n in 0..2 * MAX_CACHE_ENTRIES {
            recent.put(&n.to_string(), n);
            recent.put("0", 0);
        }
        let kept = recent.0.lock().unwrap();
        assert!(kept.0.len() <= MAX_CACHE_ENTRIES && kept.1.len() <= MAX_CACHE_ENTRIES + 1);
        assert_eq!(kept.0.get(&(2 * MAX_CACHE_ENTRIES - 1).to_string()), Some(&(2 * MAX_CACHE_ENTRIES - 1)));
    }

    #[test]
    fn an_id_is_no_path() {
        assert_eq!(plain("om_a-1"), Some("om_a-1"));
        for id in ["", "a/b", "..", "a?b", "ä", &"x".repeat(129)] {
            assert_eq!(plain(id), None, "{id}");
        }
    }
}
