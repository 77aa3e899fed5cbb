//! Decides when containers come and go: one for each thread, parked when nobody works in it, taken away when it was
//! parked for long or another needs its place.
//!
//! Deliberately absent: how a container is made ([`Engine`]), and what lies in it ([`Local::furnish`]).

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

/// How often parked containers are looked at.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);

/// Gives each thread its container.
///
/// Clones share their containers. One that was [renewed](Pool::renew) does so too: what the earlier one lent
/// stays lent, and is replaced when its thread asks again.
#[derive(Clone)]
pub struct Pool {
    engine: Arc<dyn ContainerEngine>,
    places: Arc<LocalSandboxes>,
    rules: PoolRules,
    table: Arc<ContainerTable>,
}

impl Pool {
    /// Makes one without containers. The places say what threads find in them, and reach the files of
    /// threads; they need no shell.
    #[must_use]
    pub fn new(engine: Arc<dyn ContainerEngine>, places: LocalSandboxes, rules: PoolRules) -> Self {
        let table = Arc::new(ContainerTable::new(engine.clone(), rules));
        Self { engine, places: Arc::new(places), rules, table }
    }

    /// Returns one that makes containers in another way, and knows those of this one.
    #[must_use]
    pub fn renew(&self, engine: Arc<dyn ContainerEngine>, places: LocalSandboxes, rules: PoolRules) -> Self {
        self.table.follow(engine.clone(), rules);
        Self { engine, places: Arc::new(places), rules, table: self.table.clone() }
    }

    /// Returns the engine that makes its containers.
    #[must_use]
    pub fn engine(&self) -> Arc<dyn ContainerEngine> {
        self.engine.clone()
    }

    /// Looks after the containers until the future is dropped: finds those that an earlier daemon left
    /// behind, and takes away what is not needed any more, by the rules of the pool that was made last.
    pub async fn keep(&self) {
        let mut found = false;
        loop {
            found = found || self.find().await;
            self.tidy().await;
            tokio::select! {
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
                () = self.table.crowded.notified() => {}
            }
        }
    }

    /// Takes all containers away, within a time; what is left then is found by the next daemon.
    pub async fn close(&self, patience: Duration) {
        let ids = self.table.close();
        let stopping = join_all(ids.iter().map(async |(id, engine)| {
            let _alone = self.table.alone(id).await;
            stop(&**engine, id).await;
        }));
        let engine = self.table.newest().0;
        let both = async { tokio::join!(stopping, engine.close()) };
        if tokio::time::timeout(patience, both).await.is_err() {
            tracing::warn!(?patience, "failed to stop all sandboxes in time; the next start finds them");
        }
    }

    /// Parks what runs and is not known: an earlier daemon of this home made it. Says whether the engine
    /// answered.
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
            let _alone = self.table.alone(&id).await;
            if self.table.park_found(&id, &engine) {
                tracing::info!(%id, "found sandbox of an earlier start");
            }
        }
        true
    }

    /// Takes away what was parked for too long, and what is too many.
    async fn tidy(&self) {
        let PoolRules { idle_timeout, replicas, .. } = self.table.newest().1;
        let mut stale = self.table.parked_since(idle_timeout);
        stale.extend(self.table.surplus(replicas, &stale));
        for id in stale {
            self.retire(&id).await;
        }
    }

    /// Takes one away if it is still parked.
    async fn retire(&self, id: &BoxId) {
        let _alone = self.table.alone(id).await;
        if let Some(engine) = self.table.take_parked(id)
            && !stop(&*engine, id).await
        {
            // It may be there still: it is looked at again later.
            self.table.park_found(id, &engine);
        }
    }

    async fn lend(
        &self,
        folder: &ThreadFolder,
        shown: &[ShownFolder],
    ) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let id = BoxId::of(folder);
        let (mounts, files) = self.places.furnish_with(folder, shown).await?;
        let _alone = self.table.alone(&id).await;
        let known = self.table.peek(&id);
        let users = known.as_ref().map_or(0, |entry| entry.users);
        if let Some(entry) = known
            && let Some(sandbox) = self.there(&id, entry, &mounts).await
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

    /// Returns the thread's container if it can still be used: what was made to another order, and what is
    /// dead, is taken away first.
    async fn there(&self, id: &BoxId, entry: ContainerEntry, mounts: &[Mount]) -> Option<Arc<dyn Sandbox>> {
        let same = Arc::ptr_eq(&entry.engine, &self.engine) && entry.mounts == placed(mounts);
        if let Some(sandbox) = entry.sandbox.filter(|_| same || entry.users > 0)
            && entry.engine.alive(id).await
        {
            self.table.lend_again(id);
            return Some(sandbox);
        }
        self.table.remove(id);
        // One that was found only is the engine's to judge.
        if entry.found && Arc::ptr_eq(&entry.engine, &self.engine) {
            return None;
        }
        tracing::info!(%id, "replacing sandbox: it is dead, or its order has changed");
        stop(&*entry.engine, id).await;
        None
    }

    /// Takes parked containers away until there is room for one more, or none is parked.
    async fn make_room(&self, id: &BoxId) {
        // The new one is counted already.
        for other in self.table.surplus(self.rules.replicas, &[]) {
            self.retire(&other).await;
        }
        let (count, cap) = (self.table.len(), self.rules.replicas);
        if count > cap {
            tracing::warn!(%id, count, cap, "exceeded sandbox.replicas: all sandboxes are in use");
        }
    }
}

/// Returns mounts with the inodes of their folders: a container goes on to show the folder that it began with, also
/// where another one has taken its place, as a skill's new version does.
fn placed(mounts: &[Mount]) -> Vec<(Mount, u64)> {
    let inode = |mount: &Mount| std::fs::metadata(&mount.host).map_or(0, |meta| meta.ino());
    mounts.iter().map(|mount| (mount.clone(), inode(mount))).collect()
}

/// Stops a container; says in the log if it cannot be.
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
        Box::pin(self.lend(folder, &[]))
    }

    fn acquire_with<'a>(
        &'a self,
        folder: &'a ThreadFolder,
        shown: &'a [ShownFolder],
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(self.lend(folder, shown))
    }

    fn release<'a>(&'a self, folder: &'a ThreadFolder) -> BoxFuture<'a, ()> {
        self.table.give_back(&BoxId::of(folder));
        Box::pin(std::future::ready(()))
    }

    fn keeps_files_here(&self) -> bool {
        self.engine.shares_folders()
    }

    fn shell(&self) -> Option<Shell> {
        Some(Shell::Confined(self.rules.network))
    }
}
