//! One lock per sandbox, to serialize its changes.

use crate::BoxId;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{self, OwnedMutexGuard};

/// Locks that are held or waited for.
#[derive(Default)]
pub(crate) struct Locks(Mutex<HashMap<BoxId, Weak<sync::Mutex<()>>>>);

impl Locks {
    /// Locks a sandbox.
    pub(crate) async fn lock(&self, id: &BoxId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let known = locks.get(id).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let lock = Arc::default();
                locks.insert(id.clone(), Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }
}
