//! State shared by all replies of one bot.
//!
//! Telegram numbers messages: all private chats and basic groups of a bot share one sequence, and every supergroup has
//! its own. A reply that does not know whether its message was sent looks for it among the unrecorded numbers. It must
//! not find a message that another reply in the same chat has just sent, so the replies in a chat take turns at sending
//! and recording, and at searching.

use crate::transport::{Cache, KeyedLocks};

/// Upper bound of the ids of supergroups.
const SUPERGROUPS: i64 = -1_000_000_000_000;
/// The sequence shared by private chats and basic groups.
const SHARED: i64 = 0;
/// Maximum number of sequences remembered. Forgotten ones can be read from the store.
const MAX_CACHED_SEQUENCES: usize = 4096;

/// The chats of one bot.
#[derive(Default)]
pub(super) struct Chats {
    newest: Cache<i64, i64, MAX_CACHED_SEQUENCES>,
    /// Locks for sending, by chat.
    pub(super) locks: KeyedLocks<i64>,
}

impl Chats {
    /// Records a message that was seen or sent.
    pub(super) fn record_seen(&self, chat: i64, id: i64) {
        self.newest.change(sequence(chat), || id, |newest| *newest = id.max(*newest));
    }

    /// Returns the number of the newest message seen in the chat's sequence.
    pub(super) fn newest(&self, chat: i64) -> Option<i64> {
        self.newest.get(&sequence(chat))
    }
}

/// Returns the sequence that numbers a chat's messages.
pub(super) fn sequence(chat: i64) -> i64 {
    if chat < SUPERGROUPS { chat } else { SHARED }
}

/// Returns whether a chat shares its sequence with other chats.
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
