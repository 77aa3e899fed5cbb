//! One look at the skills for all runs that begin at the same moment: a look is file work on a thread of its
//! own, and a hundred of them side by side would find the same.

use futures_util::{
    FutureExt,
    future::{Shared, WeakShared},
};
use pudu_base::BoxFuture;
use pudu_skills::{Catalog, Skills};
use std::sync::{Arc, Mutex, PoisonError};

type Looking = BoxFuture<'static, Arc<Catalog>>;

/// The look that is under way, if one is.
#[derive(Default)]
pub(crate) struct CatalogCache(Mutex<Option<WeakShared<Looking>>>);

impl CatalogCache {
    /// Returns what is found now, or by the look that is under way.
    pub(crate) fn at(&self, skills: Skills) -> Shared<Looking> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let joined = under_way.as_ref().and_then(WeakShared::upgrade).filter(|look| look.peek().is_none());
        joined.unwrap_or_else(|| {
            let found =
                async { tokio::task::spawn_blocking(move || skills.read()).await.unwrap_or_default() };
            let look = found.boxed().shared();
            *under_way = look.downgrade();
            look
        })
    }
}
