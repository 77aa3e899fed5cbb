//! Limits how often a chat is updated.
//!
//! Two rules apply per chat, or per another key such as a bot or a message. Unfinished views keep a minimum interval,
//! with a small burst so that a placeholder and the first words can follow each other at once; a final view is counted
//! but never waits. If a platform asks to wait, nothing is sent to that chat before then: [`Pacer::held`] returns the
//! wait to the caller, because a call should not hang for hours.
//!
//! Deliberately absent: a queue of views. A newer view replaces an older one; only the replies of a chat take turns.

use crate::allowance::{Allowance, Rate};
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Maximum number of consecutive views without the interval.
const BURST: u32 = 2;
/// Maximum wait that a platform may request; after it, the platform is tried again.
const MAX_HOLD: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of remembered chats. Beyond it, idle ones are forgotten.
const MAX_TRACKED_CHATS: usize = 4096;

/// Rate limits of the chats of one bot.
#[derive(Debug)]
pub struct Pacer<K> {
    chats: Mutex<HashMap<K, Allowance>>,
}

impl<K> Default for Pacer<K> {
    fn default() -> Self {
        Self { chats: Mutex::default() }
    }
}

fn every(interval: Duration) -> Rate {
    Rate { burst: BURST, interval }
}

impl<K: Clone + Eq + Hash> Pacer<K> {
    /// Waits until another unfinished view may be shown in the chat. Replies of one chat take turns.
    ///
    /// # Cancel safety
    /// If the future is dropped while it waits, the next view uses its slot.
    pub async fn ready(&self, chat: &K, interval: Duration) {
        let mut at = self.with(chat, |chat, now| chat.reserve(every(interval), now));
        // A hold may begin during the wait.
        while at > Instant::now() {
            sleep_until(at).await;
            at = self.with(chat, |chat, _| chat.not_before());
        }
    }

    /// Counts a view shown now, final or not.
    pub fn spend(&self, chat: &K, interval: Duration) {
        self.with(chat, |chat, now| chat.spend(every(interval), now));
    }

    /// Blocks everything to the chat for `wait`, at most a day.
    pub fn hold(&self, chat: &K, wait: Duration) {
        self.with(chat, |chat, now| chat.hold(wait.min(MAX_HOLD), now));
    }

    /// Returns how long nothing may be sent to the chat; `None` if it is not blocked.
    pub fn held(&self, chat: &K) -> Option<Duration> {
        let left = self.with(chat, |chat, now| chat.not_before().saturating_duration_since(now));
        (!left.is_zero()).then_some(left)
    }

    fn with<T>(&self, chat: &K, change: impl FnOnce(&mut Allowance, Instant) -> T) -> T {
        let now = Instant::now();
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        if chats.len() >= MAX_TRACKED_CHATS && !chats.contains_key(chat) {
            make_room(&mut chats, now);
        }
        change(chats.entry(chat.clone()).or_insert_with(|| Allowance::new(now)), now)
    }
}

/// Forgets idle chats, or, if there are none, the chat that will be idle first.
fn make_room<K: Clone + Eq + Hash>(chats: &mut HashMap<K, Allowance>, now: Instant) {
    chats.retain(|_, chat| chat.idle_from() > now);
    if chats.len() >= MAX_TRACKED_CHATS
        && let Some(first) = chats.iter().min_by_key(|(_, chat)| chat.idle_from())
    {
        let first = first.0.clone();
        chats.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Shows views in one chat for ten seconds as fast as allowed; returns their times.
    async fn display_times(pacer: &Pacer<i64>, interval: Duration) -> Vec<u64> {
        let start = Instant::now();
        let mut times = Vec::new();
        loop {
            pacer.ready(&7, interval).await;
            if start.elapsed() > 10 * SECOND {
                return times;
            }
            pacer.spend(&7, interval);
            times.push(start.elapsed().as_secs());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_views_are_immediate_and_later_ones_keep_the_interval() {
        assert_eq!(
            display_times(&Pacer::<i64>::default(), SECOND).await,
            [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
        );
        assert_eq!(display_times(&Pacer::<i64>::default(), 3 * SECOND).await, [0, 0, 3, 6, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_blocks_only_its_own_chat() {
        let pacer = Pacer::<i64>::default();
        pacer.hold(&7, 5 * SECOND);
        pacer.hold(&7, SECOND);
        assert_eq!((pacer.held(&7), pacer.held(&8)), (Some(5 * SECOND), None));
        assert_eq!(display_times(&pacer, SECOND).await, [5, 5, 6, 7, 8, 9, 10]);
        assert_eq!(pacer.held(&7), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_that_begins_during_a_wait_is_respected() {
        let pacer = Pacer::<i64>::default();
        (0..2).for_each(|_| pacer.spend(&7, SECOND));
        let start = Instant::now();
        tokio::join!(pacer.ready(&7, SECOND), async { pacer.hold(&7, 4 * SECOND) });
        assert_eq!(start.elapsed().as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn replies_of_one_chat_take_turns() {
        let (pacer, updates) = (Pacer::<i64>::default(), Mutex::new(Vec::new()));
        let reply = async |name: &'static str| loop {
            pacer.ready(&7, SECOND).await;
            pacer.spend(&7, SECOND);
            updates.lock().unwrap().push(name);
        };
        let both = async { tokio::join!(reply("hers"), reply("his")) };
        tokio::time::timeout(10 * SECOND, both).await.unwrap_err();
        let updates = updates.into_inner().unwrap();
        // The first two views are immediate.
        assert!(updates.len() > 10 && updates[2..].windows(2).all(|turn| turn[0] != turn[1]), "{updates:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_debt_of_final_views_is_bounded() {
        let pacer = Pacer::<i64>::default();
        (0..50).for_each(|_| pacer.spend(&7, SECOND));
        let start = Instant::now();
        pacer.ready(&7, SECOND).await;
        assert_eq!(start.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_chats_are_forgotten_and_held_ones_are_not() {
        let pacer = Pacer::<i64>::default();
        pacer.hold(&-1, 60 * SECOND);
        for chat in 0..20_000 {
            assert_eq!(pacer.held(&chat), None);
        }
        assert!(pacer.chats.lock().unwrap().len() <= MAX_TRACKED_CHATS);
        assert!(pacer.held(&-1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_excessive_wait_is_limited_to_a_day() {
        let pacer = Pacer::<i64>::default();
        pacer.hold(&7, Duration::MAX);
        assert_eq!(pacer.held(&7), Some(MAX_HOLD));
    }
}
