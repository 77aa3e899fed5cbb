//! Registry of containers, with the number of users of each and the time since it was parked. Does not call engines.

use super::PoolRules;
use crate::{BoxId, ContainerEngine};
use pudu_base::{Sandbox, SandboxError};
use pudu_kit::locks::{KeyedLock, KeyedLocks};
use pudu_sandbox::Mount;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// Registry of all containers.
pub(super) struct ContainerTable {
    registry: Mutex<ContainerRegistry>,
    /// Serializes changes to each container.
    locks: KeyedLocks<BoxId>,
    /// Notified when a container is released while there are too many.
    pub(super) crowded: Notify,
}

struct ContainerRegistry {
    /// The current engine and rules.
    newest: (Arc<dyn ContainerEngine>, PoolRules),
    entries: HashMap<BoxId, ContainerEntry>,
    /// Number of containers being created.
    coming: usize,
    closed: bool,
}

/// Entry of one container.
#[derive(Clone)]
pub(super) struct ContainerEntry {
    pub(super) engine: Arc<dyn ContainerEngine>,
    /// Mounted folders with their inodes.
    pub(super) mounts: Vec<(Mount, u64)>,
    /// The sandbox; `None` if the container was adopted from an earlier daemon.
    pub(super) sandbox: Option<Arc<dyn Sandbox>>,
    pub(super) users: usize,
    pub(super) found: bool,
    parked: Instant,
}

impl ContainerEntry {
    /// Creates an entry with a number of users.
    pub(super) fn lent(
        engine: Arc<dyn ContainerEngine>,
        mounts: Vec<(Mount, u64)>,
        sandbox: Arc<dyn Sandbox>,
        users: usize,
    ) -> Self {
        Self { engine, mounts, sandbox: Some(sandbox), users, found: false, parked: Instant::now() }
    }

    fn found(engine: Arc<dyn ContainerEngine>) -> Self {
        Self { engine, mounts: Vec::new(), sandbox: None, users: 0, found: true, parked: Instant::now() }
    }
}

impl ContainerTable {
    pub(super) fn new(engine: Arc<dyn ContainerEngine>, rules: PoolRules) -> Self {
        let registry =
            ContainerRegistry { newest: (engine, rules), entries: HashMap::new(), coming: 0, closed: false };
        Self { registry: Mutex::new(registry), locks: KeyedLocks::default(), crowded: Notify::new() }
    }

    /// Replaces the current engine and rules.
    pub(super) fn follow(&self, engine: Arc<dyn ContainerEngine>, rules: PoolRules) {
        self.lock().newest = (engine, rules);
        self.crowded.notify_one();
    }

    /// Returns the current engine and rules.
    pub(super) fn newest(&self) -> (Arc<dyn ContainerEngine>, PoolRules) {
        self.lock().newest.clone()
    }

    /// Locks a container.
    pub(super) async fn lock_container(&self, id: &BoxId) -> KeyedLock {
        self.locks.lock(id).await
    }

    /// Counts a container that is being created.
    pub(super) fn count_in(&self, id: &BoxId) -> Result<Coming<'_>, SandboxError> {
        let mut registry = self.lock();
        if registry.closed {
            return Err(closed());
        }
        registry.coming += 1;
        Ok(Coming { table: self, id: id.clone() })
    }

    /// Returns the entry of a container.
    pub(super) fn peek(&self, id: &BoxId) -> Option<ContainerEntry> {
        self.lock().entries.get(id).cloned()
    }

    /// Adds a user to a container.
    pub(super) fn lend_again(&self, id: &BoxId) {
        if let Some(entry) = self.lock().entries.get_mut(id) {
            entry.users += 1;
        }
    }

    /// Removes a user from a container.
    pub(super) fn give_back(&self, id: &BoxId) {
        let mut registry = self.lock();
        if let Some(entry) = registry.entries.get_mut(id) {
            entry.users = entry.users.saturating_sub(1);
            entry.parked = Instant::now();
        }
        if registry.len() > registry.newest.1.replicas {
            self.crowded.notify_one();
        }
    }

    /// Removes an entry.
    pub(super) fn remove(&self, id: &BoxId) {
        self.lock().entries.remove(id);
    }

    /// Removes the entry of a parked container. Returns the engine to stop the container with.
    pub(super) fn take_parked(&self, id: &BoxId) -> Option<Arc<dyn ContainerEngine>> {
        let mut registry = self.lock();
        registry.entries.get(id).filter(|entry| entry.users == 0)?;
        registry.entries.remove(id).map(|entry| entry.engine)
    }

    /// Adds a parked container if it is unknown. Returns whether it was.
    pub(super) fn park_found(&self, id: &BoxId, engine: &Arc<dyn ContainerEngine>) -> bool {
        let mut registry = self.lock();
        let new = !registry.closed && !registry.entries.contains_key(id);
        if new {
            registry.entries.insert(id.clone(), ContainerEntry::found(engine.clone()));
        }
        new
    }

    /// Returns the containers that have been parked for at least this time; none if it is zero.
    pub(super) fn parked_since(&self, long: Duration) -> Vec<BoxId> {
        let registry = self.lock();
        let stale =
            |entry: &ContainerEntry| !long.is_zero() && entry.users == 0 && entry.parked.elapsed() >= long;
        registry.entries.iter().filter(|(_, entry)| stale(entry)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the parked containers beyond the limit, beginning with the longest parked. Those in `gone` do not count.
    pub(super) fn surplus(&self, cap: usize, gone: &[BoxId]) -> Vec<BoxId> {
        let registry = self.lock();
        let count = registry.len().saturating_sub(gone.len()).saturating_sub(cap);
        let parked = registry.entries.iter().filter(|(id, entry)| entry.users == 0 && !gone.contains(id));
        let mut parked: Vec<_> = parked.map(|(id, entry)| (entry.parked, id.clone())).collect();
        parked.sort();
        parked.into_iter().take(count).map(|(_, id)| id).collect()
    }

    /// Returns the number of containers, including those being created.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Removes all entries and refuses new ones. Returns the containers, each with the engine to stop it with.
    pub(super) fn close(&self) -> Vec<(BoxId, Arc<dyn ContainerEngine>)> {
        let mut registry = self.lock();
        registry.closed = true;
        registry.entries.drain().map(|(id, entry)| (id, entry.engine)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, ContainerRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContainerRegistry {
    fn len(&self) -> usize {
        self.entries.len() + self.coming
    }
}

/// A container that is being created. It is counted until this value is dropped.
pub(super) struct Coming<'a> {
    table: &'a ContainerTable,
    id: BoxId,
}

impl Coming<'_> {
    /// Adds the entry of the created container.
    pub(super) fn settle(self, entry: ContainerEntry) -> Result<(), SandboxError> {
        let mut registry = self.table.lock();
        if registry.closed {
            return Err(closed());
        }
        registry.entries.insert(self.id.clone(), entry);
        Ok(())
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let mut registry = self.table.lock();
        registry.coming = registry.coming.saturating_sub(1);
    }
}

fn closed() -> SandboxError {
    SandboxError::Refused("the daemon is stopping and creates no more sandboxes".to_owned())
}
