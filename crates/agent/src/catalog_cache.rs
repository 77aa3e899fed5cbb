//! Shares one reading of a user's skills among all runs that begin at the same moment, because a reading is file I/O on
//! a blocking thread, and concurrent readings would give the same result.

use futures_util::{
    FutureExt,
    future::{Shared, WeakShared},
};
use pudu_base::{BoxFuture, UserId};
use pudu_skills::{Catalog, Skills};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

type Looking = BoxFuture<'static, Arc<Catalog>>;

/// The readings in progress, one per user.
#[derive(Default)]
pub(crate) struct CatalogCache(Mutex<HashMap<UserId, WeakShared<Looking>>>);

impl CatalogCache {
    /// Returns the reading in progress, or starts one.
    pub(crate) fn at(&self, skills: &Skills, user: &UserId) -> Shared<Looking> {
        let mut pending_looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = |look: &WeakShared<Looking>| look.upgrade().filter(|look| look.peek().is_none());
        if let Some(look) = pending_looks.get(user).and_then(pending) {
            return look;
        }
        // Readings without a waiting run are dropped.
        pending_looks.retain(|_, look| pending(look).is_some());
        let own = skills.for_user(user);
        let found = async { pudu_kit::blocking::run(move || own.read()).await.unwrap_or_default() };
        let look = found.boxed().shared();
        if let Some(weak) = look.downgrade() {
            pending_looks.insert(user.clone(), weak);
        }
        look
    }
}
