//! The memory of all users in one home folder, read and changed under DeerFlow's lock.
//!
//! All functions block on file access. Only parsed facts are cached between calls, by the versions of their files, so a
//! change by DeerFlow or by hand is visible at the next read.

use crate::{
    bucket::FactBucket,
    cache::FactCache,
    changes::{Changes, Committed, SupersededFact},
    commit::{check_untouched, commit},
    document::{BrokenFile, MemoryDocument},
    error::MemoryError,
    fact::Fact,
    files::{FolderLock, UserFolder, recover},
    manifest::Manifest,
    migrate::{self, migrate},
    options::MemoryOptions,
    scope::MemoryScope,
    time::FactTime,
};
use pudu_base::UserId;
use std::path::PathBuf;

/// The memory of all users in one home folder.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    pub(crate) home: PathBuf,
    options: MemoryOptions,
    cache: FactCache,
}

impl MemoryStore {
    /// Creates the store of a home folder, which contains `users`.
    #[must_use]
    pub fn new(home: PathBuf, options: MemoryOptions) -> Self {
        Self { home, options, cache: FactCache::default() }
    }

    /// Sets the cache of parsed facts.
    #[must_use]
    pub fn with_cache(self, cache: FactCache) -> Self {
        Self { cache, ..self }
    }

    /// Returns its options.
    #[must_use]
    pub fn options(&self) -> &MemoryOptions {
        &self.options
    }

    /// Reads a user's memory as one agent sees it, migrating version 1.0 to 2.0. `now` is in milliseconds since 1970.
    ///
    /// # Errors
    /// When the lock times out, a migration fails, or a file operation fails. Broken files are not an error: the document
    /// lists them.
    pub fn read(&self, scope: &MemoryScope, now: i64) -> Result<MemoryDocument, MemoryError> {
        let Some(folder) = UserFolder::open(&self.home, scope.user())? else {
            return Ok(MemoryDocument::empty(scope.clone()));
        };
        let _lock = FolderLock::acquire(&folder, self.options.lock_timeout)?;
        recover(&folder)?;
        let now = FactTime::from_millis(now);
        let broken = match migrate(&folder, scope.user(), now) {
            Ok(()) => None,
            Err(MemoryError::Broken { path, why }) => Some(BrokenFile { path, why }),
            Err(error) => return Err(error),
        };
        let mut document = self.document(&folder, scope, now)?;
        document.broken.extend(broken.filter(|broken| !document.broken.contains(broken)));
        Ok(document)
    }

    /// Commits changes that were derived from a document. Changes made by others since then are kept; changes to the
    /// same parts are a conflict. `now` is in milliseconds since 1970.
    ///
    /// # Errors
    /// Those of [`MemoryStore::read`], a conflict, or a broken file that would be overwritten.
    pub fn commit(
        &self,
        base: &MemoryDocument,
        changes: &Changes,
        now: i64,
    ) -> Result<Committed, MemoryError> {
        // The lock is held from reading to writing, so one attempt is enough. DeerFlow rebases up to three times.
        self.change(&base.scope, now, |current| {
            check_untouched(base, current, changes)?;
            Ok(changes.clone())
        })
    }

    /// Applies changes that `plan` derives from current memory. `plan` runs under the lock, so it must be quick. `now`
    /// is in milliseconds since 1970.
    ///
    /// # Errors
    /// In the cases of [`MemoryStore::commit`], and if `plan` fails.
    pub fn change(
        &self,
        scope: &MemoryScope,
        now: i64,
        plan: impl FnOnce(&MemoryDocument) -> Result<Changes, MemoryError>,
    ) -> Result<Committed, MemoryError> {
        let now = FactTime::from_millis(now);
        self.locked(scope.user(), now, |folder| {
            let current = self.document(folder, scope, now)?;
            let changes = plan(&current)?;
            commit(folder, current, &changes, &self.options, now)
        })
    }

    /// Lists the superseded facts, newest first.
    ///
    /// # Errors
    /// Those of [`MemoryStore::read`].
    pub fn superseded(&self, scope: &MemoryScope) -> Result<Vec<SupersededFact>, MemoryError> {
        match UserFolder::open(&self.home, scope.user())? {
            Some(folder) => {
                let _lock = FolderLock::acquire(&folder, self.options.lock_timeout)?;
                recover(&folder)?;
                FactBucket::new(&folder, scope).superseded()
            }
            None => Ok(Vec::new()),
        }
    }

    /// Lists the agents that may remember a user, the one without a name as `__default__`.
    ///
    /// # Errors
    /// When the system fails.
    pub fn agents(&self, user: &UserId) -> Result<Vec<String>, MemoryError> {
        UserFolder::open(&self.home, user)?.map_or(Ok(Vec::new()), |folder| migrate::agents(&folder))
    }

    /// Lists the memories of all users: each user with each agent that may remember them.
    ///
    /// # Errors
    /// When the system fails.
    pub fn all_scopes(&self) -> Result<Vec<MemoryScope>, MemoryError> {
        let root = self.home.join("users");
        let entries = match std::fs::read_dir(&root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(MemoryError::io(&root))?,
        };
        let mut scopes = Vec::new();
        for entry in entries {
            let name = entry.map_err(MemoryError::io(&root))?.file_name();
            let Some(user) = name.to_str().and_then(|name| UserId::from_raw(name).ok()) else { continue };
            for agent in self.agents(&user)? {
                scopes.push(MemoryScope::of_agent(user.clone(), &agent)?);
            }
        }
        scopes.sort();
        Ok(scopes)
    }

    /// Reads a document, except for unchanged files whose facts are cached. The caller holds the lock.
    fn document(
        &self,
        folder: &UserFolder,
        scope: &MemoryScope,
        now: FactTime,
    ) -> Result<MemoryDocument, MemoryError> {
        let mut known = self.cache.take(&self.home, scope);
        let (facts, broken) = FactBucket::new(folder, scope).read_changed(&mut known, now)?;
        self.cache.put(&self.home, scope, known);
        with_facts(folder, scope, facts, broken)
    }

    /// Runs `work` on a user's folder under its lock, after recovery and migration.
    pub(crate) fn locked<T>(
        &self,
        user: &UserId,
        now: FactTime,
        work: impl FnOnce(&UserFolder) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        self.locked_as_it_is(user, |folder| {
            migrate(folder, user, now)?;
            work(folder)
        })
    }

    /// Runs `work` on a user's folder under its lock, after recovery but without migration.
    pub(crate) fn locked_as_it_is<T>(
        &self,
        user: &UserId,
        work: impl FnOnce(&UserFolder) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        let folder = UserFolder::create(&self.home, user)?;
        let _lock = FolderLock::acquire(&folder, self.options.lock_timeout)?;
        recover(&folder)?;
        work(&folder)
    }
}

/// Reads a document. The caller holds the lock.
pub(crate) fn document(folder: &UserFolder, scope: &MemoryScope) -> Result<MemoryDocument, MemoryError> {
    let (facts, broken) = FactBucket::new(folder, scope).read()?;
    with_facts(folder, scope, facts, broken)
}

/// Builds a document from its facts and broken files and from the manifest.
fn with_facts(
    folder: &UserFolder,
    scope: &MemoryScope,
    facts: Vec<Fact>,
    mut broken: Vec<BrokenFile>,
) -> Result<MemoryDocument, MemoryError> {
    let manifest = match Manifest::read(folder) {
        Ok(manifest) => manifest,
        Err(MemoryError::Broken { path, why }) => {
            broken.push(BrokenFile { path, why });
            None
        }
        Err(error) => return Err(error),
    };
    let stored = manifest.is_some() || !facts.is_empty();
    let manifest = manifest.unwrap_or_default();
    Ok(MemoryDocument {
        scope: scope.clone(),
        stored,
        revision: manifest.revision(),
        last_updated: manifest.last_updated(),
        summaries: manifest.summaries(),
        facts,
        broken,
    })
}

#[cfg(test)]
pub(crate) mod tests;
