//! Decides when containers start and stop. Each thread has one container, which is parked after use, and removed when
//! it has been parked for too long or another container needs room.
//!
//! Deliberately absent: the creation of containers ([`ContainerEngine`]) and their contents ([`LocalSandboxes`]).

mod rules;
mod table;

pub use rules::PoolRules;
#[cfg(test)]
mod tests;

use crate::{BoxId, ContainerEngine, Order};
use futures_util::future::join_all;
use pudu_base::{BoxFuture, Sandbox, SandboxError, SandboxProvider, Shell, ShownFolder, ThreadFolder};
use pudu_sandbox::{LocalSandboxes, Mount};
use std::{os::unix::fs::MetadataExt, sync::Arc, time::Duration};
use table::{ContainerEntry, ContainerTable};

/// Interval between checks of parked containers.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);

/// Provides each thread with its container.
///
/// Clones and [renewed](Pool::renew) pools share their containers. Containers in use stay in use; when a thread asks
/// again for one that is outdated and no longer in use, it is replaced.
#[derive(Clone)]
pub struct Pool {
    engine: Arc<dyn ContainerEngine>,
    places: Arc<LocalSandboxes>,
    rules: PoolRules,
    table: Arc<ContainerTable>,
}

impl Pool {
    /// Creates an empty pool. `places` defines the mounts of threads and accesses their files; it needs no shell.
    #[must_use]
    pub fn new(engine: Arc<dyn ContainerEngine>, places: LocalSandboxes, rules: PoolRules) -> Self {
        let table = Arc::new(ContainerTable::new(engine.clone(), rules));
        Self { engine, places: Arc::new(places), rules, table }
    }

    /// Returns a pool with a new engine and new rules that shares the containers of this one.
    #[must_use]
    pub fn renew(&self, engine: Arc<dyn ContainerEngine>, places: LocalSandboxes, rules: PoolRules) -> Self {
        self.table.follow(engine.clone(), rules);
        Self { engine, places: Arc::new(places), rules, table: self.table.clone() }
    }

    /// Returns the pool's engine.
    #[must_use]
    pub fn engine(&self) -> Arc<dyn ContainerEngine> {
        self.engine.clone()
    }

    /// Maintains the containers until the future is dropped: adopts those of an earlier daemon, and removes containers
    /// according to the newest pool's rules.
    pub async fn keep(&self) {
        let mut found = false;
        loop {
            found = found || self.find().await;
            self.remove_stale().await;
            tokio::select! {
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
                () = self.table.crowded.notified() => {}
            }
        }
    }

    /// Removes all containers within a timeout. The next daemon finds the remaining ones.
    pub async fn close(&self, patience: Duration) {
        let ids = self.table.close();
        let stopping = join_all(ids.iter().map(async |(id, engine)| {
            let _alone = self.table.lock_container(id).await;
            stop(&**engine, id).await;
        }));
        let engine = self.table.newest().0;
        let both = async { tokio::join!(stopping, engine.close()) };
        if tokio::time::timeout(patience, both).await.is_err() {
            tracing::warn!(?patience, "failed to stop all sandboxes in time; the next start finds them");
        }
    }

    /// Parks running containers of earlier daemons of this home. Returns whether the engine responded.
    async fn find(&self) -> bool {
        let engine = self.table.newest().0;
        let ids = match engine.running().await {
            Ok(ids) => ids,
            Err(error) => {
                tracing::warn!(%error, "failed to look for sandboxes of an earlier start");
                return false;
            }
        };
        for id in ids {
            let _alone = self.table.lock_container(&id).await;
            if self.table.park_found(&id, &engine) {
                tracing::info!(%id, "found sandbox of an earlier start");
            }
        }
        true
    }

    /// Removes containers that have been parked for too long or that exceed the limit.
    async fn remove_stale(&self) {
        let PoolRules { idle_timeout, replicas, .. } = self.table.newest().1;
        let mut stale = self.table.parked_since(idle_timeout);
        stale.extend(self.table.surplus(replicas, &stale));
        for id in stale {
            self.retire(&id).await;
        }
    }

    /// Removes a container if it is still parked.
    async fn retire(&self, id: &BoxId) {
        let _alone = self.table.lock_container(id).await;
        if let Some(engine) = self.table.take_parked(id)
            && !stop(&*engine, id).await
        {
            // The container may still exist, so it is checked again later.
            self.table.park_found(id, &engine);
        }
    }

    async fn acquire_sandbox(
        &self,
        folder: &ThreadFolder,
        shown: &[ShownFolder],
    ) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let id = BoxId::from_folder(folder);
        let (mounts, files) = self.places.furnish_with(folder, shown).await?;
        let _alone = self.table.lock_container(&id).await;
        let known = self.table.peek(&id);
        let users = known.as_ref().map_or(0, |entry| entry.users);
        if let Some(entry) = known
            && let Some(sandbox) = self.usable_container(&id, entry, &mounts).await
        {
            return Ok(sandbox);
        }
        let coming = self.table.count_in(&id)?;
        self.make_room(&id).await;
        let places = placed(&mounts);
        let order = Order { id: id.clone(), folder: folder.clone(), mounts, files };
        let sandbox = self.engine.start(&order).await?;
        let entry = ContainerEntry::lent(self.engine.clone(), places, sandbox.clone(), users + 1);
        if let Err(closed) = coming.settle(entry) {
            stop(&*self.engine, &id).await;
            return Err(closed);
        }
        Ok(sandbox)
    }

    /// Returns the thread's container if it is usable. Removes it if it is outdated or dead.
    async fn usable_container(
        &self,
        id: &BoxId,
        entry: ContainerEntry,
        mounts: &[Mount],
    ) -> Option<Arc<dyn Sandbox>> {
        let same = Arc::ptr_eq(&entry.engine, &self.engine) && entry.mounts == placed(mounts);
        if let Some(sandbox) = entry.sandbox.filter(|_| same || entry.users > 0)
            && entry.engine.alive(id).await
        {
            self.table.lend_again(id);
            return Some(sandbox);
        }
        self.table.remove(id);
        // The engine checks an adopted container itself.
        if entry.found && Arc::ptr_eq(&entry.engine, &self.engine) {
            return None;
        }
        tracing::info!(%id, "replacing sandbox: it ended, or its specification changed");
        stop(&*entry.engine, id).await;
        None
    }

    /// Removes parked containers until there is room for the new one or none is left.
    async fn make_room(&self, id: &BoxId) {
        // The new container is already counted.
        for other in self.table.surplus(self.rules.replicas, &[]) {
            self.retire(&other).await;
        }
        let (count, cap) = (self.table.len(), self.rules.replicas);
        if count > cap {
            tracing::warn!(%id, count, cap, "exceeded sandbox.replicas: all sandboxes are in use");
        }
    }
}

/// Returns mounts with the inodes of their folders. A folder may be replaced, for example by a new version of a skill,
/// but a container keeps showing the original one.
fn placed(mounts: &[Mount]) -> Vec<(Mount, u64)> {
    let inode = |mount: &Mount| std::fs::metadata(&mount.host).map_or(0, |meta| meta.ino());
    mounts.iter().map(|mount| (mount.clone(), inode(mount))).collect()
}

/// Stops a container. Logs a failure and returns whether it succeeded.
async fn stop(engine: &dyn ContainerEngine, id: &BoxId) -> bool {
    let stopped = engine.stop(id).await;
    if let Err(error) = &stopped {
        tracing::warn!(%id, %error, "failed to stop sandbox");
    }
    stopped.is_ok()
}

impl SandboxProvider for Pool {
    fn acquire<'a>(
        &'a self,
        folder: &'a ThreadFolder,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(self.acquire_sandbox(folder, &[]))
    }

    fn acquire_with<'a>(
        &'a self,
        folder: &'a ThreadFolder,
        shown: &'a [ShownFolder],
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(self.acquire_sandbox(folder, shown))
    }

    fn release<'a>(&'a self, folder: &'a ThreadFolder) -> BoxFuture<'a, ()> {
        self.table.give_back(&BoxId::from_folder(folder));
        Box::pin(std::future::ready(()))
    }

    fn keeps_files_here(&self) -> bool {
        self.engine.shares_folders()
    }

    fn shell(&self) -> Option<Shell> {
        Some(Shell::Confined(self.rules.network))
    }
}
