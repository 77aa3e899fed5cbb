//! Migrates memory of version 1.0 to 2.0 when it is first read, as DeerFlow does: facts move from `memory.json` to
//! separate files, an agent's own `memory.json` moves to its folder, and the original is kept as `memory.json.v1.bak`.
//!
//! Items that are not facts remain in the backup only. A fact whose name is taken gets a new name.

use crate::{
    bucket::FactBucket,
    document::ImportedDocument,
    error::MemoryError,
    fact::{Fact, FactId},
    files::{FileTransaction, MANIFEST, UserFolder},
    manifest::Manifest,
    markdown,
    scope::{self, MemoryScope},
    summary::{Summaries, SummaryKey},
    time::FactTime,
};
use pudu_base::UserId;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// Extension of the backup of a file made before its migration.
pub(crate) const BACKUP_ENDING: &str = ".v1.bak";
/// Folder where an earlier version of DeerFlow stored the facts of the agent without a name.
const OLD_DEFAULT_AGENT: &str = "lead-agent";

/// Migrates the remaining data of version 1.0. The caller holds the lock.
pub(crate) fn migrate(folder: &UserFolder, user: &UserId, now: FactTime) -> Result<(), MemoryError> {
    if Manifest::read(folder)?.is_some_and(|manifest| manifest.is_old()) {
        Migration { folder, scope: &MemoryScope::for_user(user.clone()), now }.run(Path::new(MANIFEST))?;
    }
    for agent in agents(folder)? {
        let file = agent_manifest(&agent);
        if folder.exists(&file) {
            let scope = MemoryScope::of_agent(user.clone(), &agent)?;
            Migration { folder, scope: &scope, now }.run(&file)?;
        }
    }
    move_old_default(folder, user, now)
}

/// Lists the folders of agents.
pub(crate) fn agents(folder: &UserFolder) -> Result<Vec<String>, MemoryError> {
    let mut agents = folder.list("agents")?;
    agents.retain(|name| scope::is_agent(name) && *name == name.to_lowercase());
    Ok(agents)
}

/// Returns the path of an agent's own `memory.json` of version 1.0.
pub(crate) fn agent_manifest(agent: &str) -> PathBuf {
    Path::new("agents").join(agent).join(MANIFEST)
}

/// Returns the path of the backup of a file made before its migration.
pub(crate) fn backup(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(BACKUP_ENDING);
    PathBuf::from(name)
}

struct Migration<'a> {
    folder: &'a UserFolder,
    scope: &'a MemoryScope,
    now: FactTime,
}

impl Migration<'_> {
    fn run(&self, file: &Path) -> Result<(), MemoryError> {
        let fail = |why: String| MemoryError::Migration { path: self.folder.path(file), why };
        let manifest = Manifest::read(self.folder)?.unwrap_or_default();
        let old = Manifest::read_file(self.folder, file)?.unwrap_or_default();
        let imported =
            ImportedDocument::read(&old.document(), self.now).map_err(|refusal| fail(refusal.to_string()))?;
        for item in &imported.malformed {
            tracing::warn!(file = %self.folder.path(file).display(), item, "kept malformed fact in the backup only");
        }
        let revision = manifest.revision();
        let mut transaction = FileTransaction::new(self.scope.agent(), (revision, revision + 1));
        self.keep_backup(&mut transaction, file)?;
        self.place_facts(&mut transaction, imported.facts)?;
        let summaries = merge(manifest.summaries(), &imported.summaries).map_err(|key| {
            fail(format!("its summary `{}` differs from the user's; delete one of them", key.path().1))
        })?;
        let next = manifest.next(revision + 1, &summaries, self.now);
        transaction.write(PathBuf::from(MANIFEST), next);
        if file != Path::new(MANIFEST) {
            transaction.remove(file.to_owned());
        }
        transaction.commit(self.folder)
    }

    /// Backs up the file. An existing backup that differs is from another migration and is never overwritten.
    fn keep_backup(&self, transaction: &mut FileTransaction, file: &Path) -> Result<(), MemoryError> {
        let copy = backup(file);
        let bytes = self.folder.read(file)?.unwrap_or_default();
        match self.folder.read(&copy)? {
            Some(old) if old == bytes => {}
            Some(_) => {
                let why = "this backup is from another migration; move it away".to_owned();
                return Err(MemoryError::Migration { path: self.folder.path(copy), why });
            }
            None => transaction.write(copy, bytes),
        }
        Ok(())
    }

    fn place_facts(&self, transaction: &mut FileTransaction, facts: Vec<Fact>) -> Result<(), MemoryError> {
        let bucket = FactBucket::new(self.folder, self.scope);
        let (stored, _) = bucket.read()?;
        let mut taken: HashSet<FactId> = HashSet::new();
        let is_free = |id: &FactId, taken: &HashSet<FactId>| {
            !taken.contains(id) && !self.folder.exists(bucket.file(id))
        };
        for mut fact in facts {
            if stored.iter().any(|old| old.id == fact.id && old.content == fact.content) {
                continue;
            }
            if !is_free(&fact.id, &taken) {
                fact.id = FactId::derive(&fact.content, fact.created_at, |id| !is_free(id, &taken));
            }
            match markdown::write(&fact, self.scope) {
                Ok(text) => transaction.write(bucket.file(&fact.id), text),
                Err(why) => tracing::warn!(fact = %fact.id, why, "kept unreadable fact in the backup only"),
            }
            taken.insert(fact.id);
        }
        Ok(())
    }
}

/// Joins summaries. Two different texts are a conflict.
fn merge(mut current: Summaries, old: &Summaries) -> Result<Summaries, SummaryKey> {
    for key in SummaryKey::ALL {
        let (ours, theirs) = (current.get(key), old.get(key));
        if theirs.text.is_empty() || ours.text == theirs.text {
            continue;
        }
        if !ours.text.is_empty() {
            return Err(key);
        }
        current.set(key, &theirs.text, theirs.updated_at);
    }
    Ok(current)
}

/// Moves the facts of an earlier default agent. A folder with a `config.yaml` is a custom agent of that name, and one
/// with unknown files is left unchanged.
fn move_old_default(folder: &UserFolder, user: &UserId, now: FactTime) -> Result<(), MemoryError> {
    let children = folder.list(Path::new("agents").join(OLD_DEFAULT_AGENT))?;
    let known = |name: &String| matches!(name.as_str(), "facts" | ".metadata") || name.starts_with(MANIFEST);
    if !children.iter().any(|name| name == "facts") || !children.iter().all(known) {
        return Ok(());
    }
    let old_scope = MemoryScope::of_agent(user.clone(), OLD_DEFAULT_AGENT)?;
    let old = FactBucket::new(folder, &old_scope);
    let scope = MemoryScope::for_user(user.clone());
    let (mut facts, _) = old.read()?;
    // There is no backup, so a fact that could not be read at its new path is not moved.
    facts.retain(|fact| markdown::write(fact, &scope).is_ok());
    if facts.is_empty() {
        return Ok(());
    }
    let manifest = Manifest::read(folder)?.unwrap_or_default();
    let revision = manifest.revision();
    let mut transaction = FileTransaction::new(scope.agent(), (revision, revision + 1));
    for fact in &facts {
        transaction.remove(old.file(&fact.id));
    }
    Migration { folder, scope: &scope, now }.place_facts(&mut transaction, facts)?;
    transaction.write(PathBuf::from(MANIFEST), manifest.next(revision + 1, &manifest.summaries(), now));
    transaction.commit(folder)
}

#[cfg(test)]
mod tests;
