//! State that the replies of one account have to share.
//!
//! Telegram numbers messages: all private chats and basic groups of a bot share one sequence, every supergroup has its
//! own. A reply that does not know whether its message was sent looks for it among the numbers that no record knows. It
//! must not take a message that another reply of the same chat sent a moment ago, so replies of one chat take turns at
//! sending (with its record) and at looking.

use crate::transport::{Cache, KeyedLocks};

/// Supergroups have ids below this.
const SUPERGROUPS: i64 = -1_000_000_000_000;
/// The sequence that private chats and basic groups share.
const SHARED: i64 = 0;
/// Maximum number of sequences remembered: forgotten ones can be read from the store.
const MAX_CACHED_SEQUENCES: usize = 4096;

/// The chats of one account.
pub(super) struct Chats {
    newest: Cache<i64, i64>,
    /// The right to send in each chat.
    pub(super) locks: KeyedLocks<i64>,
}

impl Default for Chats {
    fn default() -> Self {
        Self { newest: Cache::new(MAX_CACHED_SEQUENCES), locks: KeyedLocks::default() }
    }
}

impl Chats {
    /// A message was seen or sent.
    pub(super) fn record_seen(&self, chat: i64, id: i64) {
        self.newest.change(sequence(chat), || id, |newest| *newest = id.max(*newest));
    }

    /// Returns the newest message's number in the chat's sequence, if one was seen.
    pub(super) fn newest(&self, chat: i64) -> Option<i64> {
        self.newest.get(&sequence(chat))
    }
}

/// Returns the sequence by which a chat's messages are numbered.
pub(super) fn sequence(chat: i64) -> i64 {
    if chat < SUPERGROUPS { chat } else { SHARED }
}

/// Returns whether a chat's messages are numbered together with those of other chats.
pub(super) fn is_shared(chat: i64) -> bool {
    sequence(chat) == SHARED
}

#[cfg(test)]
mod tests {
    use super::Chats;

    #[test]
    fn private_chats_share_a_sequence_and_supergroups_do_not() {
        let chats = Chats::default();
        chats.record_seen(7, 10);
        chats.record_seen(-5, 12);
        chats.record_seen(7, 11);
        chats.record_seen(-1_001_000_000_001, 99);
        assert_eq!(
            [7, 8, -5, -1_001_000_000_001, -1_001_000_000_002].map(|chat| chats.newest(chat)),
            [Some(12), Some(12), Some(12), Some(99), None]
        );
    }
}
