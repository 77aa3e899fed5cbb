//! Requests of a user or a tool: add, change, forget, clear, export, import.

use crate::{
    bucket::FactBucket,
    changes::{Changes, Committed},
    document::{DocumentDetail, ImportedDocument, MemoryDocument},
    error::{MemoryError, MemoryRefusal},
    fact::{Fact, FactCategory, FactId, FactOrigin, FactSource, normalize_content},
    files::{FileTransaction, MANIFEST, UserFolder},
    forget::everything,
    manifest::Manifest,
    migrate::{self, backup},
    options::MemoryOptions,
    scope::MemoryScope,
    secrets::has_secret,
    store::MemoryStore,
    summary::{Summaries, SummaryKey},
    time::FactTime,
};
use pudu_base::UserId;
use serde_json::Value;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// A fact to be stored on request.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFact {
    /// Its text.
    pub content: String,
    /// Its kind; DeerFlow's default is `context`.
    pub category: FactCategory,
    /// Its certainty, from 0 to 1; DeerFlow's default is 0.5.
    pub confidence: f64,
    /// Its source.
    pub source: FactSource,
    /// Evidence.
    pub origin: Option<FactOrigin>,
}

/// New values of a fact. Values that are `None` stay unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FactEdit {
    /// Its text.
    pub content: Option<String>,
    /// Its kind.
    pub category: Option<FactCategory>,
    /// Its certainty, from 0 to 1.
    pub confidence: Option<f64>,
    /// The revision that the writer read; a different one is a conflict.
    pub revision: Option<u64>,
}

impl MemoryStore {
    /// Stores a fact, and returns its name and the applied changes.
    ///
    /// # Errors
    /// When it is empty, too long, already known, or less valuable than all facts of a full memory. Also in the cases
    /// of [`MemoryStore::change`].
    pub fn add(
        &self,
        scope: &MemoryScope,
        new: NewFact,
        now: i64,
    ) -> Result<(FactId, Committed), MemoryError> {
        let content = checked(&new.content, self.options())?;
        check_confidence(new.confidence)?;
        check_secrets(&content)?;
        let at = FactTime::from_millis(now);
        let mut name = None;
        let committed = self.change(scope, now, |document| {
            if let Some(same) = document.find_same(&content) {
                return Err(MemoryRefusal::Duplicate { id: same.id.to_string() }.into());
            }
            let id = FactId::derive(&content, at, |id| is_taken(document, id));
            let fact = Fact {
                source: new.source,
                origin: new.origin,
                ..Fact::new(id.clone(), &content, new.category, new.confidence, at)
            };
            name = Some(id);
            Ok(Changes { facts: vec![fact], ..Changes::default() })
        })?;
        match name.filter(|id| committed.added.contains(id)) {
            Some(id) => Ok((id, committed)),
            None => Err(MemoryRefusal::NoRoom { max: self.options().max_facts }.into()),
        }
    }

    /// Changes a fact.
    ///
    /// # Errors
    /// When it does not exist, its new text is empty, too long or the same as another fact's, or its revision differs.
    /// Also in the cases of [`MemoryStore::change`].
    pub fn update(
        &self,
        scope: &MemoryScope,
        id: &FactId,
        edit: FactEdit,
        now: i64,
    ) -> Result<Committed, MemoryError> {
        let content = edit.content.as_deref().map(|text| checked(text, self.options())).transpose()?;
        edit.confidence.map_or(Ok(()), check_confidence)?;
        content.as_deref().map_or(Ok(()), check_secrets)?;
        self.change(scope, now, |document| {
            let old = document.fact(id).ok_or_else(|| MemoryError::UnknownFact(id.to_string()))?;
            if edit.revision.is_some_and(|revision| revision != old.revision) {
                return Err(MemoryError::Conflict { what: format!("fact {id}") });
            }
            let mut fact = old.clone();
            if let Some(content) = content {
                if let Some(same) = document.find_same(&content).filter(|same| same.id != *id) {
                    return Err(MemoryRefusal::Duplicate { id: same.id.to_string() }.into());
                }
                if content != fact.content {
                    fact.title = None;
                }
                fact.content = content;
            }
            fact.category = edit.category.unwrap_or(fact.category);
            fact.confidence = edit.confidence.unwrap_or(fact.confidence);
            Ok(Changes { facts: vec![fact], ..Changes::default() })
        })
    }

    /// Deletes facts permanently: their files, the facts that they replaced, every trace in records and backups, and
    /// the sentences about them in summaries. `forgotten` in the result lists the facts to drop from a search index.
    ///
    /// # Errors
    /// When none exists, and in the cases of [`MemoryStore::change`].
    pub fn forget(&self, scope: &MemoryScope, ids: &[FactId], now: i64) -> Result<Committed, MemoryError> {
        let changes = Changes { forgotten: ids.to_vec(), ..Changes::default() };
        let committed = self.change(scope, now, |_| Ok(changes))?;
        match ids.iter().find(|id| !committed.forgotten.contains(id)) {
            Some(missing) if committed.forgotten.is_empty() => {
                Err(MemoryError::UnknownFact(missing.to_string()))
            }
            _ => Ok(committed),
        }
    }

    /// Deletes everything that all agents remember about a user: facts, superseded facts, records, backups and
    /// summaries. The agents themselves are kept. Returns the deleted facts, each with its agent.
    ///
    /// # Errors
    /// Those of [`MemoryStore::change`], except for migrations, which are not needed here.
    pub fn clear(&self, user: &UserId, now: i64) -> Result<Vec<(String, FactId)>, MemoryError> {
        let at = FactTime::from_millis(now);
        self.locked_as_it_is(user, |folder| remove_all(folder, user, at, |_| false))
    }

    /// Deletes memory that was merged into another user's. Unreadable facts are kept. The caller holds the lock.
    pub(crate) fn empty(&self, folder: &UserFolder, user: &UserId, at: FactTime) -> Result<(), MemoryError> {
        let mut broken = HashSet::new();
        for agent in migrate::agents(folder)? {
            let scope = MemoryScope::of_agent(user.clone(), &agent)?;
            let (_, files) = FactBucket::new(folder, &scope).read()?;
            broken.extend(files.into_iter().map(|file| file.path));
        }
        remove_all(folder, user, at, |file| broken.contains(&folder.path(file))).map(drop)
    }

    /// Returns everything that one agent remembers about a user as a JSON document for [`MemoryStore::import`].
    ///
    /// # Errors
    /// Those of [`MemoryStore::read`].
    pub fn export(&self, scope: &MemoryScope, now: i64) -> Result<Value, MemoryError> {
        Ok(self.read(scope, now)?.to_json(DocumentDetail::Full))
    }

    /// Replaces an agent's memory of a user with a document: from DeerFlow, an export, or version 1.0. Facts missing
    /// from it are deleted permanently. pudu's own exports can always be imported.
    ///
    /// # Errors
    /// When it is not such a document, and in the cases of [`MemoryStore::change`].
    pub fn import(&self, scope: &MemoryScope, value: &Value, now: i64) -> Result<Committed, MemoryError> {
        let known = ["facts", "user", "history"];
        if !known.iter().any(|key| value.get(key).is_some()) {
            let why = "it has neither `facts` nor `user` nor `history`".to_owned();
            return Err(MemoryRefusal::BadDocument(why).into());
        }
        let imported = ImportedDocument::read(value, FactTime::from_millis(now))?;
        if let Some(item) = imported.malformed.first() {
            return Err(MemoryRefusal::BadDocument(item.clone()).into());
        }
        self.change(scope, now, |document| Ok(replacement(document, imported)))
    }

    /// Permanently deletes facts that have been neither confirmed nor changed since `before`, and facts that were
    /// superseded before it. Times are in milliseconds since 1970.
    ///
    /// # Errors
    /// Those of [`MemoryStore::change`].
    pub fn expire(&self, scope: &MemoryScope, before: i64, now: i64) -> Result<Committed, MemoryError> {
        let limit = FactTime::from_millis(before);
        let aside = self.superseded(scope)?.into_iter();
        let aside = aside.filter(|old| old.at.is_none_or(|at| at < limit)).map(|old| old.fact.id);
        let aside: Vec<FactId> = aside.collect();
        self.change(scope, now, |document| {
            let last = |fact: &Fact| fact.last_confirmed_at.unwrap_or_default().max(fact.updated_at);
            let old = document.facts.iter().filter(|fact| last(fact) < limit).map(|fact| fact.id.clone());
            Ok(Changes { forgotten: old.chain(aside).collect(), ..Changes::default() })
        })
    }

    /// Counts a use of facts for the eviction policy `hybrid-v1`.
    ///
    /// # Errors
    /// Those of [`MemoryStore::change`].
    pub fn note_used(&self, scope: &MemoryScope, used: &[FactId], now: i64) -> Result<(), MemoryError> {
        if used.is_empty() {
            return Ok(());
        }
        let at = FactTime::from_millis(now);
        let [_, half_life] = self.options().eviction_half_lives;
        self.locked(scope.user(), at, |folder| {
            let revision = Manifest::read(folder)?.unwrap_or_default().revision();
            let mut transaction = FileTransaction::new(scope.agent(), (revision, revision));
            FactBucket::new(folder, scope).write_uses(&mut transaction, used, half_life, at);
            transaction.commit(folder)
        })
    }
}

/// Removes all files of a user's memory except for spared facts, and returns the removed facts. Works even if the
/// manifest is broken or old. The caller holds the lock.
fn remove_all(
    folder: &UserFolder,
    user: &UserId,
    at: FactTime,
    is_spared: impl Fn(&Path) -> bool,
) -> Result<Vec<(String, FactId)>, MemoryError> {
    let revision = Manifest::read(folder).ok().flatten().unwrap_or_default().revision();
    let mut transaction = FileTransaction::new(crate::scope::DEFAULT_AGENT, (revision, revision + 1));
    let mut gone = Vec::new();
    for agent in migrate::agents(folder)? {
        let scope = MemoryScope::of_agent(user.clone(), &agent)?;
        let bucket = FactBucket::new(folder, &scope);
        let aside = bucket.superseded_files()?.into_iter().map(|(file, _)| file);
        let facts = bucket.files()?.into_iter().filter(|file| !is_spared(file));
        for file in facts.chain(aside) {
            gone.extend(named(&file).map(|id| (agent.clone(), id)));
            transaction.remove(file);
        }
        everything(folder, &agent)?.into_iter().for_each(|file| transaction.remove(file));
    }
    let copy = backup(Path::new(MANIFEST));
    if folder.exists(&copy) {
        transaction.remove(copy);
    }
    let next = Manifest::default().next(revision + 1, &Summaries::default(), at);
    transaction.write(PathBuf::from(MANIFEST), next);
    transaction.commit(folder)?;
    gone.sort();
    gone.dedup();
    Ok(gone)
}

/// Determines the changes that make memory equal to an imported document.
fn replacement(document: &MemoryDocument, imported: ImportedDocument) -> Changes {
    let is_imported = |id: &FactId| imported.facts.iter().any(|fact| fact.id == *id);
    let forgotten = document.facts.iter().map(|fact| fact.id.clone()).filter(|id| !is_imported(id)).collect();
    let summaries =
        SummaryKey::ALL.map(|key| (key, imported.summaries.get(key).text.clone())).into_iter().collect();
    let facts = imported.facts.into_iter().map(|fact| merged(document.fact(&fact.id), fact)).collect();
    Changes { summaries, facts, forgotten, keeps_all: true, ..Changes::default() }
}

/// Completes an imported fact that says the same as the existing one with the fields that the API omits.
fn merged(old: Option<&Fact>, new: Fact) -> Fact {
    match old {
        Some(old) if old.content == new.content => Fact {
            title: old.title.clone().or(new.title),
            expected_valid_days: new.expected_valid_days.or(old.expected_valid_days),
            last_confirmed_at: new.last_confirmed_at.or(old.last_confirmed_at),
            confirmation_count: new.confirmation_count.or(old.confirmation_count),
            origin: new.origin.or_else(|| old.origin.clone()),
            extra: if new.extra.is_empty() { old.extra.clone() } else { new.extra },
            ..new
        },
        _ => new,
    }
}

pub(crate) fn is_taken(document: &MemoryDocument, id: &FactId) -> bool {
    let is_broken = |path: &Path| named(path).as_ref() == Some(id);
    document.fact(id).is_some() || document.broken.iter().any(|broken| is_broken(&broken.path))
}

fn named(file: &Path) -> Option<FactId> {
    FactId::new(file.file_stem()?.to_str()?).ok()
}

fn checked(content: &str, options: &MemoryOptions) -> Result<String, MemoryError> {
    let content = normalize_content(content);
    let max = options.max_content_chars;
    match content.chars().count() {
        0 => Err(MemoryRefusal::EmptyContent.into()),
        length if length > max => Err(MemoryRefusal::TooLong { max }.into()),
        _ => Ok(content),
    }
}

fn check_secrets(content: &str) -> Result<(), MemoryError> {
    if has_secret(content) { Err(MemoryRefusal::Secret.into()) } else { Ok(()) }
}

fn check_confidence(confidence: f64) -> Result<(), MemoryError> {
    if (0.0..=1.0).contains(&confidence) { Ok(()) } else { Err(MemoryRefusal::BadConfidence.into()) }
}
