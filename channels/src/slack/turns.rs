//! One at a time in each place, in the order in which they came.

use crate::reply::ChatLock;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::Semaphore;

/// When more chats than this are remembered, those where nobody waits are forgotten.
const MAX_TRACKED_CHATS: usize = 1024;

/// Send locks of each place, given in the order of asking.
#[derive(Debug, Default)]
pub(super) struct ChatLocks(Mutex<HashMap<String, Weak<Semaphore>>>);

impl ChatLocks {
    /// Waits for the turn in a place. Whoever asks first goes first.
    pub(super) async fn lock_chat(&self, place: &str) -> ChatLock {
        let turns = self.of(place);
        // Never closed, so that there always is a turn.
        turns.acquire_owned().await.ok()
    }

    fn of(&self, place: &str) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= MAX_TRACKED_CHATS {
            turns.retain(|_, turns| turns.strong_count() > 0);
        }
        turns.get(place).and_then(Weak::upgrade).unwrap_or_else(|| {
            let fresh = Arc::new(Semaphore::new(1));
            turns.insert(place.to_owned(), Arc::downgrade(&fresh));
            fresh
        })
    }
}
