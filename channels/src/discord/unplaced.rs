//! Messages that may be for the bot but whose channels cannot be looked up at the moment.
//!
//! The stored session contains their ids, so that a crash loses none. Their text is not stored, because they may be for
//! others: the next process fetches them from the channel.

use super::wire::DiscordMessage;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Maximum number of waiting messages; beyond it the oldest is dropped. The stored session grows by about 80 bytes per
/// message.
const MAX_UNPLACED_MESSAGES: usize = 128;

/// Location of a waiting message. Stored: later versions must still read this format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnplacedMessage {
    pub(super) id: String,
    pub(super) channel: String,
    pub(super) guild: Option<String>,
}

/// A waiting message, with its content if this process received it.
pub(super) type Waiting = (UnplacedMessage, Option<DiscordMessage>);

/// The waiting messages, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Unplaced {
    waiting: Mutex<VecDeque<Waiting>>,
    added: Notify,
}

impl Unplaced {
    /// Adds a message.
    pub(super) fn add(&self, message: DiscordMessage) {
        let DiscordMessage { id, channel_id, guild_id, .. } = &message;
        let location =
            UnplacedMessage { id: id.clone(), channel: channel_id.clone(), guild: guild_id.clone() };
        self.push((location, Some(message)));
    }

    /// Adds messages recorded by a previous process.
    pub(super) fn restore(&self, locations: Vec<UnplacedMessage>) {
        locations.into_iter().for_each(|location| self.push((location, None)));
    }

    fn push(&self, message: Waiting) {
        let mut waiting = self.lock();
        if waiting.iter().any(|(location, _)| location.id == message.0.id) {
            return;
        }
        if waiting.len() >= MAX_UNPLACED_MESSAGES
            && let Some((UnplacedMessage { id, channel, .. }, _)) = waiting.pop_front()
        {
            tracing::warn!(
                message = id,
                channel,
                "dropped message: too many messages are waiting for a channel lookup"
            );
        }
        waiting.push_back(message);
        self.added.notify_one();
    }

    /// Removes a message.
    pub(super) fn remove(&self, id: &str) {
        self.lock().retain(|(location, _)| location.id != id);
    }

    /// Returns whether a message of this channel is waiting.
    pub(super) fn has_messages_in(&self, channel: &str) -> bool {
        self.lock().iter().any(|(location, _)| location.channel == channel)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Waits until there is a message.
    pub(super) async fn wait_until_nonempty(&self) {
        while self.is_empty() {
            self.added.notified().await;
        }
    }

    /// Returns whether a message still waits. It may have been deleted in the meantime.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.lock().iter().any(|(location, _)| location.id == id)
    }

    /// Returns the locations of the waiting messages, for the stored session.
    pub(super) fn locations(&self) -> Vec<UnplacedMessage> {
        self.lock().iter().map(|(location, _)| location.clone()).collect()
    }

    /// Returns the waiting messages, by channel.
    pub(super) fn by_channel(&self) -> BTreeMap<String, Vec<Waiting>> {
        let mut channels: BTreeMap<String, Vec<Waiting>> = BTreeMap::new();
        for message in self.lock().iter() {
            channels.entry(message.0.channel.clone()).or_default().push(message.clone());
        }
        channels
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: usize, channel: &str) -> DiscordMessage {
        DiscordMessage { id: id.to_string(), channel_id: channel.into(), ..DiscordMessage::default() }
    }

    #[test]
    fn waiting_messages_are_limited_and_unique() {
        let unplaced = Unplaced::default();
        for id in 0..=MAX_UNPLACED_MESSAGES {
            unplaced.add(message(id, if id % 2 == 0 { "even" } else { "odd" }));
            unplaced.add(message(id, "again"));
        }
        let locations = unplaced.locations();
        let (first, last) = (&locations[0].id, &locations[locations.len() - 1].id);
        assert_eq!((first.as_str(), last.as_str()), ("1", MAX_UNPLACED_MESSAGES.to_string().as_str()));
        assert_eq!(locations.len(), MAX_UNPLACED_MESSAGES);
        assert!(unplaced.has_messages_in("odd") && !unplaced.has_messages_in("again"));
        let channels = unplaced.by_channel();
        assert_eq!(channels.keys().collect::<Vec<_>>(), ["even", "odd"]);
        assert!(channels.values().all(|waiting| waiting.len() == MAX_UNPLACED_MESSAGES / 2));
        locations.iter().for_each(|location| unplaced.remove(&location.id));
        assert!(unplaced.is_empty());
    }
}
