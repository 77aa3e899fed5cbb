//! Cached catalogs of recently active users.

use crate::{Catalog, discover::FileStamp};
use indexmap::IndexMap;
use pudu_base::UserId;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Maximum number of users whose skills are cached.
pub(crate) const MAX_CACHED_USERS: usize = 64;

/// Stamps of the paths that a catalog was built from.
pub(crate) type Stamps = Vec<(PathBuf, Option<FileStamp>)>;

/// The most recently used catalogs of users who have their own skills.
#[derive(Debug, Default)]
pub(crate) struct UserCatalogs(pub(crate) Mutex<IndexMap<UserId, CachedView>>);

/// A user's catalog, and the identity of its sources.
#[derive(Clone, Debug)]
pub(crate) struct CachedView {
    pub(crate) shared: Arc<Catalog>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) seen: Arc<Stamps>,
}

impl UserCatalogs {
    pub(crate) fn get(&self, user: &UserId) -> Option<CachedView> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(user).cloned()
    }

    pub(crate) fn put(&self, user: &UserId, view: CachedView) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.shift_remove(user);
        if known.len() >= MAX_CACHED_USERS {
            known.shift_remove_index(0);
        }
        known.insert(user.clone(), view);
    }
}
