//! Bounded cache that evicts the least recently used entry.

use hashlink::LruCache;
use std::{
    borrow::Borrow,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Cache with at most `MAX` entries.
pub(crate) struct Cache<K, V, const MAX: usize>(Mutex<LruCache<K, V>>);

impl<K: Eq + Hash, V, const MAX: usize> Default for Cache<K, V, MAX> {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX)))
    }
}

impl<K: Eq + Hash, V, const MAX: usize> Cache<K, V, MAX> {
    /// Returns the value of a key.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        self.lock().get(key).cloned()
    }

    /// Sets the value of a key.
    pub(crate) fn put(&self, key: K, value: V) {
        self.lock().insert(key, value);
    }

    /// Changes the value of a key, which is created if it is missing.
    pub(crate) fn change<T>(&self, key: K, make: impl FnOnce() -> V, change: impl FnOnce(&mut V) -> T) -> T {
        change(self.lock().entry(key).or_insert_with(make))
    }

    /// Reads or changes the value of a key, if it exists.
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
    fn the_least_recently_used_entry_is_evicted() {
        let cache = Cache::<_, _, 100>::default();
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
