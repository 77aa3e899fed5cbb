//! Facts that were read, each with the version of its file, so that an unchanged file is read and parsed once.

use crate::{fact::Fact, files::FactFileVersion, scope::MemoryScope};
use hashlink::LruCache;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Maximum number of memories whose facts are kept.
const MAX_MEMORIES: usize = 256;

/// Facts of one memory by their files.
pub(crate) type KnownFacts = HashMap<PathBuf, (FactFileVersion, Fact)>;

/// Facts of the latest memories. Clones share them.
#[derive(Clone, Debug)]
pub struct FactCache(Arc<Mutex<LruCache<(PathBuf, MemoryScope), KnownFacts>>>);

impl Default for FactCache {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(MAX_MEMORIES))))
    }
}

impl FactCache {
    /// Takes the facts of a memory out, for a reader that holds its lock.
    pub(crate) fn take(&self, home: &Path, scope: &MemoryScope) -> KnownFacts {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&(home.to_owned(), scope.clone())).unwrap_or_default()
    }

    pub(crate) fn put(&self, home: &Path, scope: &MemoryScope, facts: KnownFacts) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((home.to_owned(), scope.clone()), facts);
    }
}
