//! A cache of parsed facts, each with the version of its file, so that an unchanged file is read and parsed only once.

use crate::{fact::Fact, files::FactFileVersion, scope::MemoryScope};
use hashlink::LruCache;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Maximum number of memories whose facts are cached.
const MAX_MEMORIES: usize = 256;

/// Facts of one memory, keyed by file.
pub(crate) type KnownFacts = HashMap<PathBuf, (FactFileVersion, Fact)>;

/// Facts of the most recently used memories. Clones share the cache.
#[derive(Clone, Debug)]
pub struct FactCache(Arc<Mutex<LruCache<(PathBuf, MemoryScope), KnownFacts>>>);

impl Default for FactCache {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(MAX_MEMORIES))))
    }
}

impl FactCache {
    /// Removes and returns the facts of a memory. The caller holds the memory's lock.
    pub(crate) fn take(&self, home: &Path, scope: &MemoryScope) -> KnownFacts {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&(home.to_owned(), scope.clone())).unwrap_or_default()
    }

    pub(crate) fn put(&self, home: &Path, scope: &MemoryScope, facts: KnownFacts) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((home.to_owned(), scope.clone()), facts);
    }
}
