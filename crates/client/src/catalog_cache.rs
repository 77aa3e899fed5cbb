//! Shares one reading of a user's skills among all runs that begin at the same moment: a reading is file work on a
//! thread of its own, and a hundred concurrent ones would find the same.

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
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = |look: &WeakShared<Looking>| look.upgrade().filter(|look| look.peek().is_none());
        if let Some(look) = under_way.get(user).and_then(pending) {
            return look;
        }
        // Readings without a waiting run are dropped.
        under_way.retain(|_, look| pending(look).is_some());
        let own = skills.for_user(user);
        let found = async { pudu_kit::blocking::run(move || own.read()).await.unwrap_or_default() };
        let look = found.boxed().shared();
        if let Some(weak) = look.downgrade() {
            under_way.insert(user.clone(), weak);
        }
        look
    }
}
