//! Merges two memories of the same person: the source user's memory is added to the target user's.
//!
//! Facts are moved with their evidence. Superseded facts stay superseded and are moved newest first while there is
//! room; the number of omitted ones is logged. Facts that the target already has are not duplicated, and the read
//! positions of conversations are moved as well. Summaries are joined: the target's sentences first, then the source's
//! new ones, while there is room. Each agent's facts are moved in one transaction, and the source is emptied last, so a
//! crash in between loses nothing, and repeating the merge duplicates nothing. Unreadable files stay.

use crate::{
    bucket::FactBucket,
    changes::{Changes, Committed, SupersedeReason, SupersededFact, Supersession},
    commit::commit,
    document::MemoryDocument,
    error::MemoryError,
    fact::{Fact, FactId},
    files::{FileTransaction, FolderLock, MANIFEST, UserFolder, recover},
    migrate::{self, migrate},
    options::MemoryOptions,
    scope::MemoryScope,
    store::{MemoryStore, document},
    summary::{Summaries, SummaryKey},
    text::{normalized, sentences},
    time::FactTime,
};
use pudu_base::UserId;
use std::collections::HashSet;

/// A memory after merging another one into it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergedMemory {
    /// The changes of each agent's facts, for a search index.
    pub agents: Vec<Committed>,
}

impl MemoryStore {
    /// Merges all agents' memory of the source user into the target user's memory, and empties the source. `now` is in
    /// milliseconds since 1970.
    ///
    /// # Errors
    /// Those of [`MemoryStore::change`], for either user. Merging again continues where it failed.
    pub fn merge(&self, source: &UserId, target: &UserId, now: i64) -> Result<MergedMemory, MemoryError> {
        let at = FactTime::from_millis(now);
        let Some(from) = UserFolder::open(&self.home, source)?.filter(|_| source != target) else {
            return Ok(MergedMemory::default());
        };
        if !from.exists(MANIFEST) && migrate::agents(&from)?.is_empty() {
            return Ok(MergedMemory::default());
        }
        let into = UserFolder::create(&self.home, target)?;
        // Locked in a fixed order, so that two opposite merges do not deadlock.
        let mut folders = [(source, &from), (target, &into)];
        folders.sort_by_key(|(user, _)| *user);
        let wait = self.options().lock_timeout;
        let [(_, first), (_, second)] = folders;
        let (_one, _other) = (FolderLock::acquire(first, wait)?, FolderLock::acquire(second, wait)?);
        for (user, folder) in folders {
            recover(folder)?;
            migrate(folder, user, at)?;
        }
        let work = Merging { from: &from, into: &into, source, target, options: self.options(), at };
        let merged = work.run()?;
        self.empty(&from, source, at)?;
        Ok(merged)
    }
}

struct Merging<'a> {
    from: &'a UserFolder,
    into: &'a UserFolder,
    source: &'a UserId,
    target: &'a UserId,
    options: &'a MemoryOptions,
    at: FactTime,
}

impl Merging<'_> {
    fn run(&self) -> Result<MergedMemory, MemoryError> {
        let mut agents = migrate::agents(self.from)?;
        let default = crate::scope::DEFAULT_AGENT.to_owned();
        if !agents.contains(&default) {
            // The summaries belong to no agent and are moved with the default one.
            agents.push(default);
        }
        let agents = agents.iter().map(|agent| self.agent(agent)).collect::<Result<_, _>>()?;
        Ok(MergedMemory { agents })
    }

    fn agent(&self, agent: &str) -> Result<Committed, MemoryError> {
        let old = MemoryScope::of_agent(self.source.clone(), agent)?;
        let scope = MemoryScope::of_agent(self.target.clone(), agent)?;
        let brought = document(self.from, &old)?;
        let current = document(self.into, &scope)?;
        let bucket = FactBucket::new(self.into, &scope);
        let facts: Vec<Fact> = renamed(&brought.facts, &current, |id| self.into.exists(bucket.file(id)));
        let summaries = joined(&current.summaries, &brought.summaries, self.options.max_summary_chars);
        let changes = Changes { facts: facts.clone(), summaries, ..Changes::default() };
        let done = commit(self.into, current, &changes, self.options, self.at)?;
        self.put_aside(&old, &scope, &done, facts)?;
        Ok(done)
    }

    /// Moves superseded facts, and supersedes the moved facts that had no room.
    fn put_aside(
        &self,
        old: &MemoryScope,
        scope: &MemoryScope,
        done: &Committed,
        facts: Vec<Fact>,
    ) -> Result<(), MemoryError> {
        let bucket = FactBucket::new(self.into, scope);
        let is_kept = |fact: &Fact| done.document.find_same(&fact.content).is_some();
        let crowded = facts.into_iter().filter(|fact| !is_kept(fact)).map(|fact| {
            let why = Supersession { id: fact.id.clone(), by: None, reason: SupersedeReason::Evicted };
            (Fact { raw_user: None, ..fact }, why)
        });
        let known: HashSet<FactId> = bucket.superseded()?.into_iter().map(|old| old.fact.id).collect();
        let crowded: Vec<_> = crowded.filter(|(fact, _)| !known.contains(&fact.id)).collect();
        let mut transaction =
            FileTransaction::new(scope.agent(), (done.document.revision, done.document.revision));
        bucket.write_superseded(&mut transaction, &crowded, self.options, self.at)?;
        let brought = FactBucket::new(self.from, old).superseded()?;
        let room = self.options.max_superseded.saturating_sub(known.len() + crowded.len());
        let is_new = |old: &&SupersededFact| !known.contains(&old.fact.id);
        let new: Vec<&SupersededFact> = brought.iter().filter(is_new).collect();
        let lost = new.len().saturating_sub(room);
        if lost > 0 {
            tracing::warn!(source = %self.source, target = %self.target, lost, "dropped oldest set-aside facts: no room");
        }
        new.into_iter().take(room).for_each(|old| bucket.keep_superseded(&mut transaction, &old.fact));
        FactBucket::new(self.from, old).move_uses(&bucket, &mut transaction);
        transaction.commit(self.into)
    }
}

/// Renames facts whose names are taken by other facts in the target.
fn renamed(facts: &[Fact], document: &MemoryDocument, is_there: impl Fn(&FactId) -> bool) -> Vec<Fact> {
    let mut taken: HashSet<FactId> = facts.iter().map(|fact| fact.id.clone()).collect();
    let mut renamed = Vec::new();
    // Facts that the target already has are skipped, because they would replace the target's fact of the same name.
    for fact in facts.iter().filter(|fact| document.find_same(&fact.content).is_none()) {
        let mut fact = fact.clone();
        if document.fact(&fact.id).is_some() || is_there(&fact.id) {
            fact.id = FactId::derive(&fact.content, fact.created_at, |id| taken.contains(id) || is_there(id));
            taken.insert(fact.id.clone());
        }
        renamed.push(fact);
    }
    renamed
}

/// Joins summaries: the source's new sentences are appended to the target's.
fn joined(target: &Summaries, source: &Summaries, max_chars: usize) -> Vec<(SummaryKey, String)> {
    let join = |key: SummaryKey| {
        let (ours, theirs) = (&target.get(key).text, &source.get(key).text);
        let known: HashSet<String> = sentences(ours).into_iter().map(normalized).collect();
        let mut text = ours.clone();
        for sentence in sentences(theirs).into_iter().map(str::trim) {
            let fits = text.chars().count() + sentence.chars().count() < max_chars;
            if !sentence.is_empty() && !known.contains(&normalized(sentence)) && fits {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(sentence);
            }
        }
        (text != *ours).then_some((key, text))
    };
    SummaryKey::ALL.into_iter().filter_map(join).collect()
}

#[cfg(test)]
mod tests;
