//! Bounded cache: the entry that was used least recently makes room for a new one.

use hashlink::LruCache;
use std::{
    borrow::Borrow,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Cache with a maximum number of entries.
pub(crate) struct Cache<K, V>(Mutex<LruCache<K, V>>);

impl<K: Eq + Hash, V> Cache<K, V> {
    pub(crate) fn new(max_entries: usize) -> Self {
        Self(Mutex::new(LruCache::new(max_entries)))
    }

    /// Returns the value of a key.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        self.lock().get(key).cloned()
    }

    /// Puts a value in place of the one before.
    pub(crate) fn put(&self, key: K, value: V) {
        self.lock().insert(key, value);
    }

    /// Changes the value of a key, which is made if it is not there.
    pub(crate) fn change<T>(&self, key: K, make: impl FnOnce() -> V, change: impl FnOnce(&mut V) -> T) -> T {
        change(self.lock().entry(key).or_insert_with(make))
    }

    /// Looks at the value of a key, or changes it, if it is there.
    pub(crate) fn with<Q, T>(&self, key: &Q, work: impl FnOnce(&mut V) -> T) -> Option<T>
    where
        Q: Eq + Hash + ?Sized,
        K: Borrow<Q>,
    {
        self.lock().get_mut(key).map(work)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_remembered_and_no_more() {
        let cache = Cache::new(100);
        for n in 0..1000 {
            cache.put(n.to_string(), n);
            cache.put("again".to_owned(), -1);
            cache.change("counted".to_owned(), || 0, |count| *count += 1);
        }
        assert_eq!(cache.lock().len(), 100);
        assert_eq!(
            (cache.get("999"), cache.get("again"), cache.get("counted")),
            (Some(999), Some(-1), Some(1000))
        );
        assert_eq!(cache.get("0"), None);
    }
}
