//! Locks by key: one holder at a time for each, in the order of asking.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{self, OwnedMutexGuard};

/// Maximum number of remembered keys; beyond it, keys without a holder or a waiter are forgotten.
const MAX_TRACKED_KEYS: usize = 4096;

/// A held lock, until it is dropped.
pub type KeyedLock = OwnedMutexGuard<()>;

/// Locks by key.
#[derive(Debug)]
pub struct KeyedLocks<K>(Mutex<HashMap<K, Weak<sync::Mutex<()>>>>);

impl<K> Default for KeyedLocks<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> KeyedLocks<K> {
    /// Waits for the lock of a key. The first to ask is the first to get it.
    pub async fn lock(&self, key: &K) -> KeyedLock {
        self.mutex(key).lock_owned().await
    }

    /// Waits for the lock of a key; `None` where `max_inside` hold it or wait for it already.
    pub async fn lock_within(&self, key: &K, max_inside: usize) -> Option<KeyedLock> {
        let lock = self.mutex(key);
        let inside = Arc::strong_count(&lock) - 1;
        if inside < max_inside { Some(lock.lock_owned().await) } else { None }
    }

    /// Forgets keys without a holder or a waiter, and returns the number of the others.
    pub fn forget_unused(&self) -> usize {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forget_unused(&mut locks);
        locks.len()
    }

    /// Returns the lock of a key.
    pub fn mutex(&self, key: &K) -> Arc<sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() >= MAX_TRACKED_KEYS {
            forget_unused(&mut locks);
        }
        locks.get(key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let fresh = Arc::default();
            locks.insert(key.clone(), Arc::downgrade(&fresh));
            fresh
        })
    }
}

fn forget_unused<K: Eq + Hash>(locks: &mut HashMap<K, Weak<sync::Mutex<()>>>) {
    locks.retain(|_, lock| lock.strong_count() > 0);
    locks.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_key_has_one_lock_and_no_other_waits_for_it() {
        let locks = KeyedLocks::default();
        let held = locks.lock(&7).await;
        assert!(locks.mutex(&7).try_lock().is_err());
        assert!(locks.mutex(&8).try_lock().is_ok());
        drop(held);
        assert!(locks.mutex(&7).try_lock().is_ok());
    }

    #[tokio::test]
    async fn so_many_keys_are_remembered_and_a_held_lock_is_never_forgotten() {
        let locks = KeyedLocks::default();
        let _held = locks.lock(&-1).await;
        for chat in 0..3 * i64::try_from(MAX_TRACKED_KEYS).unwrap() {
            locks.lock(&chat).await;
        }
        assert!(locks.0.lock().unwrap().len() <= MAX_TRACKED_KEYS);
        assert!(locks.mutex(&-1).try_lock().is_err());
    }

    #[tokio::test]
    async fn so_many_wait_in_the_order_of_asking_and_no_more() {
        let locks = KeyedLocks::default();
        let lock = || Box::pin(locks.lock_within(&"a", 3));
        let first = lock().await;
        let (mut second, mut third) = (lock(), lock());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert!(lock().await.is_none(), "three are there");
        assert!(locks.lock_within(&"b", 3).await.is_some(), "another chat does not wait");
        drop(first);
        assert!(third.as_mut().now_or_never().is_none());
        drop(second.await);
        assert!(third.await.is_some());
        let waiting: Vec<_> = (0..3).map(|_| lock()).collect();
        drop(waiting);
        assert!(lock().await.is_some(), "who gave up waiting has left");
    }
}
