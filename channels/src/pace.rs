//! How often a chat may be given something new.
//!
//! Two rules, per chat or whatever else is counted together (an account, a message). Unfinished views keep a minimum
//! interval, with a small burst so that a placeholder and the first words may follow at once; a final view counts but
//! never waits. And when a platform says "not before", nothing at all goes to that chat before then: [`Pacer::held`]
//! returns the wait to the caller, which has better means to wait than a call that hangs for hours.
//!
//! Deliberately absent: a queue of views. They are replaced by newer ones; only the replies of a chat take turns.

use crate::allowance::{Allowance, Rate};
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// How many views may follow each other without the interval.
const BURST: u32 = 2;
/// Maximum time that a platform may ask to wait; then it is asked again.
const MAX_HOLD: Duration = Duration::from_secs(24 * 60 * 60);
/// When more chats than this are remembered, idle ones are forgotten.
const MAX_TRACKED_CHATS: usize = 4096;

/// Paces the chats of one account.
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
    /// A caller that is dropped while it waits leaves its place to the next view.
    pub async fn ready(&self, chat: &K, interval: Duration) {
        let mut at = self.with(chat, |chat, now| chat.place(every(interval), now));
        // A hold may come up during the wait.
        while at > Instant::now() {
            sleep_until(at).await;
            at = self.with(chat, |chat, _| chat.not_before());
        }
    }

    /// Counts a view that is shown now, finished or not.
    pub fn spend(&self, chat: &K, interval: Duration) {
        self.with(chat, |chat, now| chat.spend(every(interval), now));
    }

    /// Keeps everything from the chat for `wait` from now on, a day at most.
    pub fn hold(&self, chat: &K, wait: Duration) {
        self.with(chat, |chat, now| chat.hold(wait.min(MAX_HOLD), now));
    }

    /// Returns how long nothing may be sent to the chat; `None` when something may.
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

/// Forgets idle chats; if none is, the one that is idle first.
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

    /// Shows views in one chat for ten seconds as fast as allowed; returns when each was shown.
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
    async fn the_first_two_views_go_at_once_and_the_rest_keep_the_interval() {
        assert_eq!(
            display_times(&Pacer::<i64>::default(), SECOND).await,
            [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
        );
        assert_eq!(display_times(&Pacer::<i64>::default(), 3 * SECOND).await, [0, 0, 3, 6, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_keeps_everything_from_its_chat_and_from_no_other() {
        let pacer = Pacer::<i64>::default();
        pacer.hold(&7, 5 * SECOND);
        pacer.hold(&7, SECOND);
        assert_eq!((pacer.held(&7), pacer.held(&8)), (Some(5 * SECOND), None));
        assert_eq!(display_times(&pacer, SECOND).await, [5, 5, 6, 7, 8, 9, 10]);
        assert_eq!(pacer.held(&7), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_that_comes_up_while_a_view_waits_is_kept() {
        let pacer = Pacer::<i64>::default();
        (0..2).for_each(|_| pacer.spend(&7, SECOND));
        let start = Instant::now();
        tokio::join!(pacer.ready(&7, SECOND), async { pacer.hold(&7, 4 * SECOND) });
        assert_eq!(start.elapsed().as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn replies_of_one_chat_take_turns() {
        let (pacer, shown) = (Pacer::<i64>::default(), Mutex::new(Vec::new()));
        let reply = async |name: &'static str| loop {
            pacer.ready(&7, SECOND).await;
            pacer.spend(&7, SECOND);
            shown.lock().unwrap().push(name);
        };
        let both = async { tokio::join!(reply("hers"), reply("his")) };
        tokio::time::timeout(10 * SECOND, both).await.unwrap_err();
        let shown = shown.into_inner().unwrap();
        // The first two views go at once.
        assert!(shown.len() > 10 && shown[2..].windows(2).all(|turn| turn[0] != turn[1]), "{shown:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn finals_are_not_owed_for_ever() {
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
    async fn a_wait_beyond_all_reason_is_a_day() {
        let pacer = Pacer::<i64>::default();
        pacer.hold(&7, Duration::MAX);
        assert_eq!(pacer.held(&7), Some(MAX_HOLD));
    }
}
