//! Fair locks by key: each key has one holder at a time, in the order of requests.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{self, OwnedMutexGuard};

/// Maximum number of remembered keys; beyond it, keys without a holder or a waiter are forgotten.
const MAX_TRACKED_KEYS: usize = 4096;

/// A held lock. It is released on drop.
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
    /// Waits for the lock of a key, in the order of calls.
    pub async fn lock(&self, key: &K) -> KeyedLock {
        self.mutex(key).lock_owned().await
    }

    /// Waits for the lock of a key. Returns `None` if `max_inside` callers already hold it or wait for it.
    pub async fn lock_within(&self, key: &K, max_inside: usize) -> Option<KeyedLock> {
        let lock = self.mutex(key);
        let inside = Arc::strong_count(&lock) - 1;
        if inside < max_inside { Some(lock.lock_owned().await) } else { None }
    }

    /// Forgets keys without a holder or a waiter, and returns how many keys remain.
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
    async fn a_key_has_one_lock_and_blocks_no_other_key() {
        let locks = KeyedLocks::default();
        let held = locks.lock(&7).await;
        assert!(locks.mutex(&7).try_lock().is_err());
        assert!(locks.mutex(&8).try_lock().is_ok());
        drop(held);
        assert!(locks.mutex(&7).try_lock().is_ok());
    }

    #[tokio::test]
    async fn remembered_keys_are_limited_and_a_held_lock_is_never_forgotten() {
        let locks = KeyedLocks::default();
        let _held = locks.lock(&-1).await;
        for chat in 0..3 * i64::try_from(MAX_TRACKED_KEYS).unwrap() {
            locks.lock(&chat).await;
        }
        assert!(locks.0.lock().unwrap().len() <= MAX_TRACKED_KEYS);
        assert!(locks.mutex(&-1).try_lock().is_err());
    }

    #[tokio::test]
    async fn waiters_are_limited_and_served_in_order() {
        let locks = KeyedLocks::default();
        let lock = || Box::pin(locks.lock_within(&"a", 3));
        let first = lock().await;
        let (mut second, mut third) = (lock(), lock());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert!(lock().await.is_none(), "three callers are inside");
        assert!(locks.lock_within(&"b", 3).await.is_some(), "another key does not wait");
        drop(first);
        assert!(third.as_mut().now_or_never().is_none());
        drop(second.await);
        assert!(third.await.is_some());
        let waiting: Vec<_> = (0..3).map(|_| lock()).collect();
        drop(waiting);
        assert!(lock().await.is_some(), "callers that gave up no longer count");
    }
}
