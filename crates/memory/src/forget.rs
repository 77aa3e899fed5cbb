//! Deletes facts permanently: a fact's file, the facts that it replaced or that say the same, its evidence, its traces
//! in records, the sentences about it in summaries, and all of this in backups of version 1.0. Nothing remains.

use crate::{
    about::Subject,
    bucket::FactBucket,
    error::MemoryError,
    fact::{Fact, FactId},
    files::{FileTransaction, MANIFEST, UserFolder},
    migrate::{agent_manifest, backup},
    scope::MemoryScope,
    summary::SummaryKey,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

/// Files to remove or rewrite in order to forget facts.
pub(crate) struct Forgetting {
    /// Forgotten facts: the requested facts, and the facts that they replaced.
    ids: Vec<FactId>,
    removed: Vec<PathBuf>,
    rewritten: BTreeMap<PathBuf, Vec<u8>>,
    /// The subjects of the facts.
    subjects: Vec<Subject>,
}

impl Forgetting {
    /// Determines the necessary changes. Facts that are neither current nor superseded are omitted.
    pub(crate) fn plan(
        folder: &UserFolder,
        bucket: &FactBucket<'_>,
        wanted: &[FactId],
    ) -> Result<Self, MemoryError> {
        let (ids, removed, rewritten) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut plan = Self { ids, removed, rewritten, subjects: Vec::new() };
        if wanted.is_empty() {
            return Ok(plan);
        }
        let superseded = bucket.superseded()?;
        let mut texts: HashSet<String> = HashSet::new();
        let (facts, _) = bucket.read()?;
        let mut open: Vec<FactId> = wanted.to_vec();
        while let Some(id) = open.pop() {
            if plan.ids.contains(&id) {
                continue;
            }
            let fact = facts.iter().find(|fact| fact.id == id);
            let old = superseded.iter().find(|old| old.fact.id == id);
            let said: Vec<&Fact> = fact.into_iter().chain(old.map(|old| &old.fact)).collect();
            texts.extend(said.iter().map(|fact| fact.content.clone()));
            plan.subjects.extend(said.iter().map(|fact| Subject::from_fact(&fact.content)));
            let same =
                superseded.iter().filter(|old| said.iter().any(|fact| fact.matches_text(&old.fact.content)));
            open.extend(same.map(|old| old.fact.id.clone()));
            // A merged fact names its sources; a superseded fact names its replacement.
            let sources = fact.into_iter().flat_map(|fact| &fact.consolidated_from);
            open.extend(
                sources.filter_map(|id| FactId::new(id).ok()).filter(|id| bucket_has(id, &superseded)),
            );
            open.extend(
                superseded.iter().filter(|old| old.by.as_ref() == Some(&id)).map(|old| old.fact.id.clone()),
            );
            let file = bucket.file(&id);
            if folder.exists(&file) {
                plan.removed.push(file);
                plan.ids.push(id);
            } else if old.is_some() {
                plan.ids.push(id);
            }
        }
        let gone = |stem: &str| plan.ids.iter().any(|id| id.as_str() == stem);
        let copies: Vec<PathBuf> = bucket
            .superseded_files()?
            .into_iter()
            .filter(|(_, stem)| gone(stem))
            .map(|(file, _)| file)
            .collect();
        plan.removed.extend(copies);
        plan.scrub_backups(folder, bucket.scope(), &texts)?;
        Ok(plan)
    }

    /// Removes the facts from copies made before a migration. An unreadable copy is removed entirely.
    fn scrub_backups(
        &mut self,
        folder: &UserFolder,
        scope: &MemoryScope,
        texts: &HashSet<String>,
    ) -> Result<(), MemoryError> {
        if self.ids.is_empty() {
            return Ok(());
        }
        for file in [PathBuf::from(MANIFEST), agent_manifest(scope.agent())] {
            let file = backup(&file);
            let Some(bytes) = folder.read(&file)? else { continue };
            match self.scrubbed(&bytes, texts) {
                Some(Some(text)) => drop(self.rewritten.insert(file, text)),
                Some(None) => {}
                None => self.removed.push(file),
            }
        }
        Ok(())
    }

    /// Returns a backup without the facts: `None` if it cannot be parsed, `Some(None)` if it does not contain any fact.
    fn scrubbed(&self, bytes: &[u8], texts: &HashSet<String>) -> Option<Option<Vec<u8>>> {
        let mut document: Value = serde_json::from_slice(bytes).ok()?;
        let mut is_changed = false;
        if let Some(facts) = document.get_mut("facts").and_then(Value::as_array_mut) {
            let before = facts.len();
            facts.retain(|fact| {
                let text = |key: &str| fact.get(key).and_then(Value::as_str).unwrap_or_default();
                let is_listed = self.ids.iter().any(|id| id.as_str() == text("id"));
                !is_listed && !texts.contains(&crate::fact::normalize_content(text("content")))
            });
            is_changed = facts.len() != before;
        }
        for key in SummaryKey::ALL {
            let (section, name) = key.path();
            let Some(value) = document.get_mut(section).and_then(|section| section.get_mut(name)) else {
                continue;
            };
            let slot = if value.is_string() { Some(value) } else { value.get_mut("summary") };
            let Some(slot) = slot else { continue };
            if let Some(text) = slot.as_str().and_then(|text| self.cut_from(text)) {
                *slot = Value::String(text);
                is_changed = true;
            }
        }
        Some(is_changed.then(|| serde_json::to_vec_pretty(&document).ok()).flatten())
    }

    /// Removes the sentences about the facts from a text. Returns `None` if there are none.
    pub(crate) fn cut_from(&self, text: &str) -> Option<String> {
        let cut = |now: Option<String>, subject: &Subject| {
            let next = subject.cut_from(now.as_deref().unwrap_or(text));
            next.or(now)
        };
        self.subjects.iter().fold(None, cut)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Lists the forgotten facts.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &FactId> {
        self.ids.iter()
    }

    pub(crate) fn write(&self, bucket: &FactBucket<'_>, transaction: &mut FileTransaction) {
        for file in &self.removed {
            transaction.remove(file.clone());
        }
        for (file, text) in &self.rewritten {
            transaction.write(file.clone(), text.clone());
        }
        let gone: HashSet<&str> = self.ids.iter().map(FactId::as_str).collect();
        if !gone.is_empty() {
            bucket.forget_metadata(transaction, &gone);
        }
    }
}

fn bucket_has(id: &FactId, superseded: &[crate::changes::SupersededFact]) -> bool {
    superseded.iter().any(|old| old.fact.id == *id)
}

/// Lists every memory file below an agent's folder, for clearing everything.
pub(crate) fn everything(folder: &UserFolder, agent: &str) -> Result<Vec<PathBuf>, MemoryError> {
    let metadata = crate::files::metadata_folder(agent);
    let mut files = Vec::new();
    for name in folder.list(&metadata)? {
        let below = metadata.join(&name);
        let names = folder.list(&below)?;
        files.extend(names.iter().map(|name| below.join(name)));
        if names.is_empty() && folder.is_file(&below) {
            files.push(below);
        }
    }
    let manifest = agent_manifest(agent);
    let old = [backup(&manifest), manifest];
    files.extend(old.into_iter().filter(|file| folder.exists(Path::new(file))));
    Ok(files)
}
