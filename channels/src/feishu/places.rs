//! Where messages stand: what was seen goes by, and the platform is asked for what is not remembered.
//!
//! A press says under which message it was, a recall which message is gone; neither says whether the chat is
//! private or who wrote. That comes from what the platform said of the message itself, never from what a
//! card carries. What cannot be found out is not guessed.

use super::client::Client;
use pudu_net::reqwest::Method;
use serde_json::Value;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// A name may take so long to be looked up: the message waits for it.
const NAME: Duration = Duration::from_millis(1000);
/// After a name that could not be had none is asked for in this time.
const NAMELESS: Duration = Duration::from_secs(10 * 60);
/// So many messages, chats and names are remembered each.
const MOST: usize = 4096;

/// Where a message stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) chat: String,
    pub(super) topic: Option<String>,
    pub(super) private: bool,
    /// Who wrote it; `None` is this bot.
    pub(super) sender: Option<String>,
}

/// What is remembered, the newest of each.
#[derive(Debug, Default)]
pub(super) struct Places {
    messages: Recent<Place>,
    /// Whether a chat is private.
    chats: Recent<bool>,
    names: Recent<String>,
    /// Whether a message is part of a conversation: to the bot, or of it.
    talked: Recent<bool>,
    /// Until then names are not asked for: the app may not.
    nameless: tokio::sync::Mutex<Option<Instant>>,
}

impl Places {
    /// A message was seen or sent.
    pub(super) fn saw(&self, message: &str, place: Place) {
        self.chats.put(&place.chat, place.private);
        self.messages.put(message, place);
    }

    /// It was found out whether a message is part of a conversation.
    pub(super) fn talked(&self, message: &str, part: bool) {
        self.talked.put(message, part);
    }

    /// Tells whether a message is part of a conversation, if that is remembered.
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

    /// Returns somebody's name; it is asked for if it is not known and the app may.
    pub(super) async fn ask_name(&self, client: &Client, person: &str) -> String {
        // One at a time and in turn, so that messages stay in order.
        let mut nameless = self.nameless.lock().await;
        let silent = *nameless;
        if self.names.get(person).is_none() && silent.is_none_or(|until| until <= Instant::now()) {
            let asked = timeout(NAME, look_up_name(client, person)).await;
            match asked {
                Ok(Some(name)) => self.named(person, &name),
                Ok(None) | Err(_) => {
                    *nameless = Some(Instant::now() + NAMELESS);
                }
            }
        }
        self.name(person)
    }

    /// Returns where a message stands; `None` if that cannot be found out.
    pub(super) async fn find(&self, client: &Client, message: &str) -> Option<Place> {
        if let Some(place) = self.messages.get(message) {
            return Some(place);
        }
        let told = client.call(Method::GET, &format!("im/v1/messages/{}", plain(message)?), None).await;
        let told = told
            .inspect_err(|failure| tracing::warn!(error = %failure.error, "a message cannot be looked up"));
        let told = told.ok()?;
        let item = told.pointer("/items/0")?;
        let chat = item["chat_id"].as_str()?;
        let sender = match item.pointer("/sender/sender_type").and_then(Value::as_str)? {
            "user" => Some(item.pointer("/sender/id")?.as_str()?.to_owned()),
            _ if item.pointer("/sender/id")?.as_str()? == client.app_id() => None,
            _ => return None,
        };
        let private = self.is_private(client, chat).await?;
        let thread = item["thread_id"].as_str().filter(|thread| !thread.is_empty() && !private);
        let place = Place { chat: chat.to_owned(), topic: thread.map(str::to_owned), private, sender };
        self.saw(message, place.clone());
        Some(place)
    }

    async fn is_private(&self, client: &Client, chat: &str) -> Option<bool> {
        if let Some(private) = self.chats.get(chat) {
            return Some(private);
        }
        let told = client.call(Method::GET, &format!("im/v1/chats/{}", plain(chat)?), None).await;
        let told =
            told.inspect_err(|failure| tracing::warn!(error = %failure.error, "a chat cannot be looked up"));
        Some(told.ok()?["chat_mode"].as_str()? == "p2p")
    }
}

async fn look_up_name(client: &Client, person: &str) -> Option<String> {
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
        if map.len() > MOST
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
        for n in 0..2 * MOST {
            recent.put(&n.to_string(), n);
            recent.put("0", 0);
        }
        let kept = recent.0.lock().unwrap();
        assert!(kept.0.len() <= MOST && kept.1.len() <= MOST + 1);
        assert_eq!(kept.0.get(&(2 * MOST - 1).to_string()), Some(&(2 * MOST - 1)));
    }

    #[test]
    fn an_id_is_no_path() {
        assert_eq!(plain("om_a-1"), Some("om_a-1"));
        for id in ["", "a/b", "..", "a?b", "ä", &"x".repeat(129)] {
            assert_eq!(plain(id), None, "{id}");
        }
    }
}
