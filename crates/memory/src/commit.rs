//! Applies one change of one agent's memory: computes the resulting facts and writes the files.

use crate::{
    bucket::FactBucket,
    changes::{Changes, Committed, EvictedFact, SupersedeReason, Supersession},
    document::MemoryDocument,
    error::{MemoryError, MemoryRefusal},
    evict::evict,
    fact::{Fact, FactId},
    files::{FileTransaction, MANIFEST, UserFolder},
    forget::Forgetting,
    manifest::Manifest,
    markdown,
    options::MemoryOptions,
    summary::SummaryKey,
    time::FactTime,
};
use std::{collections::BTreeSet, path::PathBuf};

/// Applies changes to the current memory. The caller holds the lock.
pub(crate) fn commit(
    folder: &UserFolder,
    current: MemoryDocument,
    changes: &Changes,
    options: &MemoryOptions,
    now: FactTime,
) -> Result<Committed, MemoryError> {
    let scope = current.scope.clone();
    let bucket = FactBucket::new(folder, &scope);
    let manifest = Manifest::read(folder)?.unwrap_or_default();
    let forgetting = Forgetting::plan(folder, &bucket, &changes.forgotten)?;
    let mut plan = Plan::new(current, now);
    plan.forget(&forgetting);
    plan.supersede(&changes.superseded);
    plan.put(folder, &bucket, &changes.facts)?;
    let reserved = if changes.keeps_all { 0 } else { plan.make_room(&bucket, options) };
    let summaries_changed = plan.summarize(changes, &forgetting);
    if plan.is_empty() && forgetting.is_empty() && !summaries_changed {
        return Ok(plan.done);
    }
    let revision = manifest.revision();
    let mut transaction = FileTransaction::new(scope.agent(), (revision, revision + 1));
    forgetting.write(&bucket, &mut transaction);
    for fact in plan.written() {
        let unreadable = |why| MemoryRefusal::BadDocument(format!("fact {}: {why}", fact.id));
        transaction.write(bucket.file(&fact.id), markdown::write(fact, &scope).map_err(unreadable)?);
    }
    for (fact, _) in &plan.gone {
        transaction.remove(bucket.file(&fact.id));
    }
    bucket.write_superseded(&mut transaction, &plan.gone, options, now)?;
    bucket.write_origins(&mut transaction, &plan.done.document.facts);
    bucket.write_audit(&mut transaction, &plan.done.evicted, reserved, options, now);
    let next = manifest.next(revision + 1, &plan.done.document.summaries, now);
    transaction.write(PathBuf::from(MANIFEST), next);
    transaction.commit(folder)?;
    let document = &mut plan.done.document;
    document.revision = revision + 1;
    document.stored = true;
    document.last_updated = Some(now);
    Ok(plan.done)
}

/// Checks that the targets of a change have not changed since the writer read them. Changes to other facts do not
/// matter: the writer's changes are applied on top.
pub(crate) fn check_untouched(
    base: &MemoryDocument,
    current: &MemoryDocument,
    changes: &Changes,
) -> Result<(), MemoryError> {
    let touched = changes.facts.iter().map(|fact| &fact.id);
    for id in touched.chain(changes.superseded.iter().map(|gone| &gone.id)) {
        let same = match (base.fact(id), current.fact(id)) {
            (None, None) => true,
            (Some(read), Some(now)) => read.revision == now.revision && read.same_matter(now),
            _ => false,
        };
        if !same {
            return Err(MemoryError::Conflict { what: format!("fact {id}") });
        }
    }
    for (key, _) in &changes.summaries {
        if base.summaries.get(*key).text != current.summaries.get(*key).text {
            return Err(MemoryError::Conflict { what: format!("summary {}", key.path().1) });
        }
    }
    Ok(())
}

/// The next state of memory while it is being computed.
struct Plan {
    done: Committed,
    /// Facts to be superseded.
    gone: Vec<(Fact, Supersession)>,
    now: FactTime,
}

impl Plan {
    fn new(document: MemoryDocument, now: FactTime) -> Self {
        let done = Committed {
            document,
            added: Vec::new(),
            changed: Vec::new(),
            duplicates: Vec::new(),
            superseded: Vec::new(),
            evicted: Vec::new(),
            forgotten: Vec::new(),
        };
        Self { done, gone: Vec::new(), now }
    }

    fn is_empty(&self) -> bool {
        self.done.added.is_empty() && self.done.changed.is_empty() && self.gone.is_empty()
    }

    /// Lists the facts whose files are written.
    fn written(&self) -> impl Iterator<Item = &Fact> {
        let ids: BTreeSet<&FactId> = self.done.added.iter().chain(&self.done.changed).collect();
        self.done.document.facts.iter().filter(move |fact| ids.contains(&fact.id))
    }

    fn take(&mut self, id: &FactId) -> Option<Fact> {
        let facts = &mut self.done.document.facts;
        let index = facts.iter().position(|fact| fact.id == *id)?;
        Some(facts.remove(index))
    }

    fn forget(&mut self, forgetting: &Forgetting) {
        for id in forgetting.ids() {
            self.take(id);
            self.done.forgotten.push(id.clone());
        }
        self.done.document.broken.retain(|broken| {
            let stem = broken.path.file_stem().map(|stem| stem.to_string_lossy());
            !stem.is_some_and(|stem| forgetting.ids().any(|id| id.as_str() == stem))
        });
    }

    fn supersede(&mut self, superseded: &[Supersession]) {
        for why in superseded {
            if let Some(fact) = self.take(&why.id) {
                self.done.superseded.push(why.id.clone());
                self.gone.push((fact, why.clone()));
            }
        }
    }

    fn put(
        &mut self,
        folder: &UserFolder,
        bucket: &FactBucket<'_>,
        facts: &[Fact],
    ) -> Result<(), MemoryError> {
        // Uses the raw user id of existing facts: DeerFlow compares it, and the folder's name may differ from it.
        let document = &self.done.document;
        let known = document.facts.iter().find_map(|fact| fact.raw_user.clone());
        let raw_user = known.unwrap_or_else(|| document.scope.user().to_string());
        for fact in facts {
            let is_gone = self.gone.iter().any(|(gone, _)| gone.id == fact.id);
            if is_gone || self.done.forgotten.contains(&fact.id) {
                continue;
            }
            if let Some(old) = self.done.document.facts.iter_mut().find(|old| old.id == fact.id) {
                if !old.same_matter(fact) {
                    *old = next_version(old, fact, self.now);
                    self.done.changed.push(fact.id.clone());
                }
                continue;
            }
            if folder.exists(bucket.file(&fact.id)) {
                return Err(self.broken(folder, bucket, fact));
            }
            if let Some(same) = self.done.document.find_same(&fact.content) {
                self.done.duplicates.push((fact.id.clone(), same.id.clone()));
                continue;
            }
            let new = Fact { raw_user: Some(raw_user.clone()), revision: 1, ..fact.clone() };
            self.done.added.push(new.id.clone());
            self.done.document.facts.push(new);
        }
        self.done.document.facts.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(())
    }

    fn broken(&self, folder: &UserFolder, bucket: &FactBucket<'_>, fact: &Fact) -> MemoryError {
        let path = folder.path(bucket.file(&fact.id));
        let known = self.done.document.broken.iter().find(|broken| broken.path == path);
        let why = known.map_or_else(|| "it is not a fact".to_owned(), |broken| broken.why.clone());
        MemoryError::Broken { path, why }
    }

    /// Evicts facts if there are too many. A new fact that would be evicted at once is not added.
    fn make_room(&mut self, bucket: &FactBucket<'_>, options: &MemoryOptions) -> usize {
        // Each new fact evicts at most one other fact, so lowering the limit alone deletes nothing.
        let before = self.done.document.facts.len() - self.done.added.len();
        if self.done.added.is_empty() {
            return 0;
        }
        let places = MemoryOptions { max_facts: options.max_facts.max(before), ..options.clone() };
        let (evicted, reserved) = evict(&self.done.document.facts, &bucket.heat(), &places, self.now);
        for EvictedFact { id, .. } in &evicted {
            let Some(fact) = self.take(id) else { continue };
            if let Some(index) = self.done.added.iter().position(|added| added == id) {
                self.done.added.remove(index);
                continue;
            }
            self.done.changed.retain(|changed| changed != id);
            self.done.superseded.push(id.clone());
            self.gone
                .push((fact, Supersession { id: id.clone(), by: None, reason: SupersedeReason::Evicted }));
        }
        self.done.evicted = evicted;
        reserved
    }

    /// Writes summaries. Sentences about a forgotten fact are removed from every summary that is not new.
    fn summarize(&mut self, changes: &Changes, forgetting: &Forgetting) -> bool {
        let summaries = &mut self.done.document.summaries;
        let before = summaries.clone();
        for key in SummaryKey::ALL {
            let is_new = changes.summaries.iter().any(|(new, _)| *new == key);
            if let Some(text) = forgetting.cut_from(&summaries.get(key).text).filter(|_| !is_new) {
                summaries.set(key, &text, Some(self.now));
            }
        }
        for (key, text) in &changes.summaries {
            if summaries.get(*key).text != text.trim() {
                summaries.set(*key, text, Some(self.now));
            }
        }
        *summaries != before
    }
}

fn next_version(old: &Fact, fact: &Fact, now: FactTime) -> Fact {
    Fact {
        revision: old.revision + 1,
        created_at: old.created_at,
        updated_at: now,
        raw_user: old.raw_user.clone(),
        ..fact.clone()
    }
}
