//! Search for a message that may have been sent.
//!
//! Telegram has no idempotency keys: a call whose response was lost, by a crash or by the network, may have left a
//! message with an unknown number. But numbers grow, the message's number is higher than the newest one known before
//! the call, and an edit shows whether a number is one of the bot's messages in this chat. The search therefore tries
//! the numbers from there on, except those known to be something else.

use super::chats::{is_shared, sequence};
use crate::KnownMessage;
use std::collections::HashSet;

/// Maximum number of tried numbers. Each needs a call.
const TRIES: u32 = 60;
/// Maximum number of consecutive missing numbers after the newest known one. In the shared sequence, numbers also
/// belong to other chats, which cannot be distinguished from missing ones; in a supergroup, a missing message was
/// deleted.
const GAP_SHARED: u32 = 20;
const GAP_OWN: u32 = 5;

/// Known messages of a chat's sequence.
#[derive(Debug)]
pub(super) struct KnownIds {
    ids: HashSet<i64>,
    newest: i64,
    gap: u32,
}

impl KnownIds {
    /// Collects the messages of the sequence of `chat`.
    pub(super) fn new(chat: i64, known_messages: &[KnownMessage], own: impl Iterator<Item = i64>) -> Self {
        let same =
            |known_message: &&KnownMessage| known_message.chat.parse().map(sequence) == Ok(sequence(chat));
        let seen =
            known_messages.iter().filter(same).filter_map(|known_message| known_message.message.parse().ok());
        let ids: HashSet<i64> = seen.chain(own).collect();
        let gap = if is_shared(chat) { GAP_SHARED } else { GAP_OWN };
        Self { newest: ids.iter().copied().max().unwrap_or(0), ids, gap }
    }

    /// Returns the number of the newest message; 0 if there is none.
    pub(super) fn newest(&self) -> i64 {
        self.newest
    }
}

/// A search, which can be paused and resumed at its last position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageSearch {
    next: i64,
    tries: u32,
    missing: u32,
}

impl MessageSearch {
    /// Starts after `floor`, the newest message known before the call.
    pub(super) fn above(floor: i64) -> Self {
        Self { next: floor + 1, tries: 0, missing: 0 }
    }

    /// Returns the next number to try; `None` if the search is over.
    pub(super) fn candidate(&mut self, known: &KnownIds) -> Option<i64> {
        while known.ids.contains(&self.next) {
            self.next += 1;
            self.missing = 0;
        }
        let beyond = self.next > known.newest && self.missing >= known.gap;
        (self.tries < TRIES && !beyond).then_some(self.next)
    }

    /// Records that the candidate is not in this chat.
    pub(super) fn missing(&mut self) {
        self.missing += 1;
        self.pass();
    }

    /// Records that the candidate is another message of this chat.
    pub(super) fn foreign(&mut self) {
        self.missing = 0;
        self.pass();
    }

    fn pass(&mut self) {
        self.next += 1;
        self.tries += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: i64 = -1_001_000_000_001;

    fn tried(chat: i64, known: &[(i64, i64)], there: fn(i64) -> bool) -> Vec<i64> {
        let known_message =
            |(chat, id): &(i64, i64)| KnownMessage { chat: chat.to_string(), message: id.to_string() };
        let known_messages: Vec<KnownMessage> = known.iter().map(known_message).collect();
        let known = KnownIds::new(chat, &known_messages, std::iter::once(11));
        let mut search = MessageSearch::above(10);
        let mut tried = Vec::new();
        while let Some(id) = search.candidate(&known) {
            tried.push(id);
            if there(id) { search.foreign() } else { search.missing() }
        }
        tried
    }

    #[test]
    fn known_messages_are_not_touched() {
        let tried = tried(7, &[(7, 12), (8, 14), (GROUP, 13)], |_| false);
        assert_eq!(tried, [&[13][..], &(15..35).collect::<Vec<_>>()].concat());
    }

    #[test]
    fn numbers_of_other_chats_do_not_count_in_a_supergroup() {
        let tried = tried(GROUP, &[(7, 12), (GROUP, 13)], |_| false);
        assert_eq!(tried.first(), Some(&12));
        assert!(!tried.contains(&13));
    }

    #[test]
    fn the_search_ends() {
        assert_eq!(tried(7, &[], |_| false).len(), 20);
        assert_eq!(tried(GROUP, &[], |_| false).len(), 5);
        assert_eq!(tried(7, &[], |_| true).len(), 60);
        assert_eq!(tried(7, &[(7, 1000)], |_| false).len(), 60);
    }
}
