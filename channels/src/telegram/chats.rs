//! State that the replies of one account have to share.
//!
//! Telegram numbers messages: all private chats and basic groups of a bot share one sequence, every
//! supergroup has its own. A reply that does not know whether its message was sent looks for it among the
//! numbers that nobody knows. It must not take a message that another reply of the same chat sent a moment
//! ago, so replies of one chat take turns at sending (with its record) and at looking.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Supergroups have ids below this.
const SUPERGROUPS: i64 = -1_000_000_000_000;
/// The sequence that private chats and basic groups share.
const SHARED: i64 = 0;
/// Maximum number of chats remembered: what is forgotten can be read from the store.
const MAX_TRACKED_CHATS: usize = 4096;

/// The chats of one account.
#[derive(Debug, Default)]
pub(super) struct Chats {
    newest: Mutex<HashMap<i64, i64>>,
    turns: Mutex<HashMap<i64, Weak<Semaphore>>>,
}

/// The right to send in a chat, until it is dropped.
pub(super) type TelegramChatLock = Option<OwnedSemaphorePermit>;

impl Chats {
    /// A message was seen or sent.
    pub(super) fn saw(&self, chat: i64, id: i64) {
        let mut newest = lock(&self.newest);
        if newest.len() >= MAX_TRACKED_CHATS {
            newest.clear();
        }
        let known = newest.entry(sequence(chat)).or_insert(id);
        *known = id.max(*known);
    }

    /// Returns the newest message's number in the chat's sequence, if one was seen.
    pub(super) fn newest(&self, chat: i64) -> Option<i64> {
        lock(&self.newest).get(&sequence(chat)).copied()
    }

    /// Waits for the turn to send in a chat.
    pub(super) async fn turn(&self, chat: i64) -> TelegramChatLock {
        let turns = self.turns_of(chat);
        // Never closed, so that there always is a turn.
        turns.acquire_owned().await.ok()
    }

    fn turns_of(&self, chat: i64) -> Arc<Semaphore> {
        let mut turns = lock(&self.turns);
        if turns.len() >= MAX_TRACKED_CHATS {
            turns.retain(|_, turns| turns.strong_count() > 0);
        }
        turns.get(&chat).and_then(Weak::upgrade).unwrap_or_else(|| {
            let fresh = Arc::new(Semaphore::new(1));
            turns.insert(chat, Arc::downgrade(&fresh));
            fresh
        })
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Chats;

    #[test]
    fn private_chats_share_a_sequence_and_supergroups_do_not() {
        let chats = Chats::default();
        chats.saw(7, 10);
        chats.saw(-5, 12);
        chats.saw(7, 11);
        chats.saw(-1_001_000_000_001, 99);
        assert_eq!(
            [7, 8, -5, -1_001_000_000_001, -1_001_000_000_002].map(|chat| chats.newest(chat)),
            [Some(12), Some(12), Some(12), Some(99), None]
        );
    }

    #[tokio::test]
    async fn a_chat_gives_one_turn_at_a_time() {
        let chats = Chats::default();
        let turn = chats.turn(7).await;
        assert!(chats.turns_of(7).try_acquire().is_err());
        assert!(chats.turns_of(8).try_acquire().is_ok());
        drop(turn);
        assert!(chats.turns_of(7).try_acquire().is_ok());
    }
}
