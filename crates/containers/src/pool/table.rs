//! The book on containers: which there are, who works in them, since when they are parked. It calls nobody.

use super::PoolRules;
use crate::{BoxId, ContainerEngine, locks::Locks};
use pudu_base::{Sandbox, SandboxError};
use pudu_sandbox::Mount;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, OwnedMutexGuard},
    time::Instant,
};

/// Registry of all containers.
pub(super) struct ContainerTable {
    book: Mutex<ContainerBook>,
    /// One at a time does something to a container.
    locks: Locks,
    /// Told when a container was given back and there are more than there should be.
    pub(super) crowded: Notify,
}

struct ContainerBook {
    /// The engine that makes containers at the moment, and the rules by which they are kept.
    newest: (Arc<dyn ContainerEngine>, PoolRules),
    entries: HashMap<BoxId, ContainerEntry>,
    /// So many are being made.
    coming: usize,
    closed: bool,
}

/// Entry of one container.
#[derive(Clone)]
pub(super) struct ContainerEntry {
    pub(super) engine: Arc<dyn ContainerEngine>,
    /// The folders that it shows, with their inodes.
    pub(super) mounts: Vec<(Mount, u64)>,
    /// None if it was found only.
    pub(super) sandbox: Option<Arc<dyn Sandbox>>,
    pub(super) users: usize,
    pub(super) found: bool,
    parked: Instant,
}

impl ContainerEntry {
    /// Returns one that so many work in.
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
        let book =
            ContainerBook { newest: (engine, rules), entries: HashMap::new(), coming: 0, closed: false };
        Self { book: Mutex::new(book), locks: Locks::default(), crowded: Notify::new() }
    }

    /// Another engine makes them from now on, or other rules count.
    pub(super) fn follow(&self, engine: Arc<dyn ContainerEngine>, rules: PoolRules) {
        self.lock().newest = (engine, rules);
        self.crowded.notify_one();
    }

    /// Returns who makes them now, and by which rules they are kept.
    pub(super) fn newest(&self) -> (Arc<dyn ContainerEngine>, PoolRules) {
        self.lock().newest.clone()
    }

    /// Waits until nobody else does something to this container.
    pub(super) async fn alone(&self, id: &BoxId) -> OwnedMutexGuard<()> {
        self.locks.lock(id).await
    }

    /// Counts one that is being made.
    pub(super) fn count_in(&self, id: &BoxId) -> Result<Coming<'_>, SandboxError> {
        let mut book = self.lock();
        if book.closed {
            return Err(closed());
        }
        book.coming += 1;
        Ok(Coming { table: self, id: id.clone() })
    }

    /// Returns what is known of one.
    pub(super) fn peek(&self, id: &BoxId) -> Option<ContainerEntry> {
        self.lock().entries.get(id).cloned()
    }

    /// One more works in it.
    pub(super) fn lend_again(&self, id: &BoxId) {
        if let Some(entry) = self.lock().entries.get_mut(id) {
            entry.users += 1;
        }
    }

    /// One less works in it.
    pub(super) fn give_back(&self, id: &BoxId) {
        let mut book = self.lock();
        if let Some(entry) = book.entries.get_mut(id) {
            entry.users = entry.users.saturating_sub(1);
            entry.parked = Instant::now();
        }
        if book.len() > book.newest.1.replicas {
            self.crowded.notify_one();
        }
    }

    /// Forgets one.
    pub(super) fn remove(&self, id: &BoxId) {
        self.lock().entries.remove(id);
    }

    /// Forgets one if nobody works in it; returns who can take it away.
    pub(super) fn take_parked(&self, id: &BoxId) -> Option<Arc<dyn ContainerEngine>> {
        let mut book = self.lock();
        book.entries.get(id).filter(|entry| entry.users == 0)?;
        book.entries.remove(id).map(|entry| entry.engine)
    }

    /// Parks one that is not known; says whether it was not.
    pub(super) fn park_found(&self, id: &BoxId, engine: &Arc<dyn ContainerEngine>) -> bool {
        let mut book = self.lock();
        let new = !book.closed && !book.entries.contains_key(id);
        if new {
            book.entries.insert(id.clone(), ContainerEntry::found(engine.clone()));
        }
        new
    }

    /// Returns those that nobody worked in for so long; none if that is zero.
    pub(super) fn parked_since(&self, long: Duration) -> Vec<BoxId> {
        let book = self.lock();
        let stale =
            |entry: &ContainerEntry| !long.is_zero() && entry.users == 0 && entry.parked.elapsed() >= long;
        book.entries.iter().filter(|(_, entry)| stale(entry)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns so many of the parked ones, the longest parked first, as there are too many; some are gone
    /// already.
    pub(super) fn surplus(&self, cap: usize, gone: &[BoxId]) -> Vec<BoxId> {
        let book = self.lock();
        let count = book.len().saturating_sub(gone.len()).saturating_sub(cap);
        let parked = book.entries.iter().filter(|(id, entry)| entry.users == 0 && !gone.contains(id));
        let mut parked: Vec<_> = parked.map(|(id, entry)| (entry.parked, id.clone())).collect();
        parked.sort();
        parked.into_iter().take(count).map(|(_, id)| id).collect()
    }

    /// Returns how many there are, with those that are being made.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Forgets all, for good; returns who can take them away.
    pub(super) fn close(&self) -> Vec<(BoxId, Arc<dyn ContainerEngine>)> {
        let mut book = self.lock();
        book.closed = true;
        book.entries.drain().map(|(id, entry)| (id, entry.engine)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, ContainerBook> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContainerBook {
    fn len(&self) -> usize {
        self.entries.len() + self.coming
    }
}

/// A container that is being made; it counts as long as this lives.
pub(super) struct Coming<'a> {
    table: &'a ContainerTable,
    id: BoxId,
}

impl Coming<'_> {
    /// It is there now.
    pub(super) fn settle(self, entry: ContainerEntry) -> Result<(), SandboxError> {
        let mut book = self.table.lock();
        if book.closed {
            return Err(closed());
        }
        book.entries.insert(self.id.clone(), entry);
        Ok(())
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let mut book = self.table.lock();
        book.coming = book.coming.saturating_sub(1);
    }
}

fn closed() -> SandboxError {
    SandboxError::Refused("the daemon is about to stop: no sandbox is made any more".to_owned())
}
