//! One look at a user's skills for all runs that begin at the same moment: a look is file work on a thread of its
//! own, and a hundred of them side by side would find the same.

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

/// The looks that are under way, of each user one.
#[derive(Default)]
pub(crate) struct CatalogCache(Mutex<HashMap<UserId, WeakShared<Looking>>>);

impl CatalogCache {
    /// Returns what is found now, or by the look that is under way.
    pub(crate) fn at(&self, skills: &Skills, user: &UserId) -> Shared<Looking> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = |look: &WeakShared<Looking>| look.upgrade().filter(|look| look.peek().is_none());
        if let Some(look) = under_way.get(user).and_then(pending) {
            return look;
        }
        // Those for which nobody waits any more take no room.
        under_way.retain(|_, look| pending(look).is_some());
        let own = skills.of(user);
        let found = async { tokio::task::spawn_blocking(move || own.read()).await.unwrap_or_default() };
        let look = found.boxed().shared();
        if let Some(weak) = look.downgrade() {
            under_way.insert(user.clone(), weak);
        }
        look
    }
}
