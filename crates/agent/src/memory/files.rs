//! Memory files and their index.

use super::rules::{MemoryOf, MemoryTrouble};
use crate::Agent;
use pudu_kit::{blocking, clock::millis};
use pudu_memory::{
    Committed, Fact, FactCache, FactCategory, FactEdit, FactId, FactOrigin, FactSource, MemoryDocument,
    MemoryError, MemoryOptions, MemoryScope, MemoryStore, NewFact, speaks_of,
};
use pudu_store::{Db, MemoryMerge, RecallEntry, RecallKind, RecallLimits, RecallScope, now};
use serde_json::Value;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Limits of the search for messages about a forgotten fact.
const TURNS_TO_FORGET: RecallLimits = RecallLimits { facts: 0, turns: 200 };

/// Maximum number of memories whose digests a process keeps.
const MAX_KNOWN_MEMORIES: usize = 10_000;

/// Maximum number of attempts to index a memory for one question, if it keeps changing.
const MAX_INDEX_TRIES: usize = 3;

/// The memories of a home: the files, and their index in the store.
#[derive(Clone)]
pub struct Memories {
    db: Db,
    home: PathBuf,
    options: MemoryOptions,
    indexed: Arc<IndexedMemories>,
}

/// Memories as last seen by this process: digests of the ones whose facts are known to be indexed, and their files.
#[derive(Default)]
pub(crate) struct IndexedMemories {
    digests: Mutex<HashMap<RecallScope, String>>,
    facts: FactCache,
}

impl IndexedMemories {
    fn is_known(&self, scope: &RecallScope, digest: &str) -> bool {
        let known = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(scope).is_some_and(|known| known == digest)
    }

    fn note(&self, scope: RecallScope, digest: String) {
        let mut known = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN_MEMORIES {
            known.clear();
        }
        known.insert(scope, digest);
    }
}

impl Agent {
    /// Returns the handle on the memories of users and groups.
    #[must_use]
    pub fn memories(&self) -> Memories {
        let setup = self.setup();
        let options = setup.memory.as_ref().map(|memory| memory.rules.options.clone()).unwrap_or_default();
        let (db, home) = (self.0.db.clone(), self.0.folders.home().to_owned());
        Memories { db, home, options, indexed: self.0.indexed.clone() }
    }
}

impl Memories {
    /// Creates the handle for a home, and the store with its index.
    #[must_use]
    pub fn new(db: Db, home: &Path, options: MemoryOptions) -> Self {
        Self { db, home: home.to_owned(), options, indexed: Arc::default() }
    }

    /// Returns the memory options.
    pub(super) fn options(&self) -> MemoryOptions {
        self.options.clone()
    }

    /// Returns a memory.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub async fn read(&self, of: &MemoryOf) -> Result<MemoryDocument, MemoryTrouble> {
        let scope = of.scope()?;
        self.work(move |store, now| store.read(&scope, now)).await
    }

    /// Returns a memory after indexing its facts, because another program may have written or deleted some.
    pub(super) async fn read_indexed(&self, of: &MemoryOf) -> Result<MemoryDocument, MemoryTrouble> {
        let mut document = self.read(of).await?;
        for _ in 0..MAX_INDEX_TRIES {
            let (scope, digest) = (of.indexed(), digest_of(&document));
            if self.indexed.is_known(&scope, &digest) {
                break;
            }
            let indexed = self.db.indexed_facts(&scope).await?;
            let is_new = |fact: &&Fact| indexed.get(fact.id.as_str()) != Some(&fact.content);
            let new: Vec<RecallEntry> =
                document.facts.iter().filter(is_new).map(|fact| entry(of, fact)).collect();
            self.db.index(&new).await?;
            let is_there = |id: &str| document.facts.iter().any(|fact| fact.id.as_str() == id);
            let gone: Vec<String> = indexed.into_keys().filter(|id| !is_there(id)).collect();
            self.db.unindex(&scope, RecallKind::Fact, &gone).await?;
            // The next attempt removes a fact that was deleted during this one.
            document = self.read(of).await?;
            if digest_of(&document) == digest {
                self.indexed.note(scope, digest);
            }
        }
        Ok(document)
    }

    /// Runs blocking work on the files.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(MemoryStore, i64) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, MemoryTrouble> {
        let store = MemoryStore::new(self.home.clone(), self.options.clone());
        let store = store.with_cache(self.indexed.facts.clone());
        blocking(move || Ok(work(store, now())?), |_| MemoryTrouble::Broken).await
    }

    /// Changes a memory and updates the index.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        of: &MemoryOf,
        work: impl FnOnce(&MemoryStore, &MemoryScope, i64) -> Result<(T, Committed), MemoryError> + Send + 'static,
    ) -> Result<(T, Committed), MemoryTrouble> {
        let scope = of.scope()?;
        let done = self.work(move |store, now| work(&store, &scope, now)).await?;
        pudu_store::crash::point("memory.committed");
        self.index(of, &done.1).await?;
        Ok(done)
    }

    /// Stores a fact at a user's request, and returns its id.
    ///
    /// # Errors
    /// If the fact is empty, too long or already known, or the files cannot be written.
    pub async fn remember(
        &self,
        of: &MemoryOf,
        text: &str,
        person: &str,
        name: &str,
    ) -> Result<String, MemoryTrouble> {
        let origin = FactOrigin {
            author: Some(person.to_owned()),
            author_name: Some(name.to_owned()),
            quote: Some(text.to_owned()),
            ..FactOrigin::default()
        };
        let new = NewFact {
            content: text.to_owned(),
            category: FactCategory::parse("context", None),
            confidence: 1.0,
            source: FactSource::manual(),
            origin: Some(origin),
        };
        let (id, _) = self.change(of, move |store, scope, now| store.add(scope, new, now)).await?;
        Ok(id.to_string())
    }

    /// Adds a fact written by a user, and returns the memory with it.
    ///
    /// # Errors
    /// If the fact is empty, too long or already known, or the files cannot be written.
    pub async fn add(&self, of: &MemoryOf, fact: NewFact) -> Result<MemoryDocument, MemoryTrouble> {
        let (_, done) = self.change(of, move |store, scope, now| store.add(scope, fact, now)).await?;
        Ok(done.document)
    }

    /// Changes a fact, and returns the memory with it.
    ///
    /// # Errors
    /// If there is no fact with this id, the change is invalid, or the files cannot be written.
    pub async fn edit(
        &self,
        of: &MemoryOf,
        id: &str,
        edit: FactEdit,
    ) -> Result<MemoryDocument, MemoryTrouble> {
        let id = FactId::new(id).map_err(|_| MemoryError::UnknownFact(id.to_owned()))?;
        let edit = move |store: &MemoryStore, scope: &MemoryScope, now| {
            Ok(((), store.update(scope, &id, edit, now)?))
        };
        let (_, done) = self.change(of, edit).await?;
        Ok(done.document)
    }

    /// Deletes a fact permanently, along with the indexed messages about it that a search finds. Messages in
    /// conversations are kept.
    ///
    /// # Errors
    /// If there is no fact with this id, or the files cannot be written.
    pub async fn forget(&self, of: &MemoryOf, id: &str) -> Result<(), MemoryTrouble> {
        let id = FactId::new(id).map_err(|_| MemoryError::UnknownFact(id.to_owned()))?;
        let known = move |store: &MemoryStore, scope: &MemoryScope, now| {
            let aside = store.superseded(scope)?.into_iter().map(|old| old.fact);
            let all = store.read(scope, now)?.facts.into_iter().chain(aside);
            let all: HashMap<FactId, Fact> = all.map(|fact| (fact.id.clone(), fact)).collect();
            Ok((all, store.forget(scope, &[id], now)?))
        };
        let (known, done) = self.change(of, known).await?;
        for fact in done.forgotten.iter().filter_map(|id| known.get(id)) {
            self.forget_turns(of, fact).await?;
        }
        Ok(self.db.purge_write_log().await?)
    }

    /// Removes messages about a fact from the index.
    async fn forget_turns(&self, of: &MemoryOf, fact: &Fact) -> Result<(), MemoryTrouble> {
        let found = self.db.recall(&of.indexed(), &fact.content, TURNS_TO_FORGET).await?.turns;
        let found =
            found.into_iter().filter(|turn| speaks_of(&turn.text, &fact.content)).map(|turn| turn.doc);
        let source = fact.origin.as_ref().and_then(|origin| origin.message.clone());
        let docs: Vec<String> = found.chain(source).collect();
        Ok(self.db.unindex(&of.indexed(), RecallKind::Turn, &docs).await?)
    }

    /// Deletes a user's or group's memory for all agents.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub async fn forget_all(&self, of: &MemoryOf) -> Result<(), MemoryTrouble> {
        let user = of.user.clone();
        // The index is deleted first, so that nothing is recalled from it.
        self.db.forget_user(&of.user).await?;
        self.work(move |store, now| store.clear(&user, now).map(drop)).await?;
        Ok(self.db.purge_write_log().await?)
    }

    /// Returns the whole memory as one document, for [`Memories::import`] and DeerFlow.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub async fn export(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        let scope = of.scope()?;
        self.work(move |store, now| store.export(&scope, now)).await
    }

    /// Replaces a memory with a document, and returns the number of facts. Facts missing from the document are deleted.
    ///
    /// # Errors
    /// If the document is not a memory, or the files cannot be written.
    pub async fn import(&self, of: &MemoryOf, document: Value) -> Result<usize, MemoryTrouble> {
        let import = move |store: &MemoryStore, scope: &MemoryScope, now| {
            Ok(((), store.import(scope, &document, now)?))
        };
        let (_, done) = self.change(of, import).await?;
        self.db.purge_write_log().await?;
        Ok(done.document.facts.len())
    }

    /// Records that facts were used.
    pub(super) async fn note_used(&self, of: &MemoryOf, used: Vec<FactId>) -> Result<(), MemoryTrouble> {
        let scope = of.scope()?;
        self.work(move |store, now| store.note_used(&scope, &used, now)).await
    }

    /// Merges the memory of a user into the memory of another user who is the same person. This is idempotent.
    pub(super) async fn merge(&self, merge: &MemoryMerge) -> Result<(), MemoryTrouble> {
        let MemoryMerge { source, target } = merge.clone();
        let merged = self.work(move |store, now| store.merge(&source, &target, now)).await?;
        pudu_store::crash::point("memory.merged_files");
        self.db.move_turns(&merge.source, &merge.target).await?;
        for done in &merged.agents {
            self.index(&MemoryOf::from_scope(&done.document.scope), done).await?;
        }
        self.db.memory_merged(merge).await?;
        Ok(self.db.purge_write_log().await?)
    }

    /// Deletes all users' facts that have been neither confirmed nor changed for `age`.
    pub(crate) async fn forget_older(&self, age: Duration) -> Result<(), MemoryTrouble> {
        let before = now() - millis(age);
        let agents = self.work(|store, _| store.all_scopes()).await?;
        for scope in agents {
            let of = MemoryOf::from_scope(&scope);
            let expire = move |store: &MemoryStore, scope: &MemoryScope, now| {
                Ok(((), store.expire(scope, before, now)?))
            };
            // A failure in one memory does not affect the others.
            if let Err(error) = self.change(&of, expire).await {
                tracing::warn!(user = %of.user, %error, "failed to forget old facts");
            }
        }
        Ok(())
    }

    /// Updates the index after a commit.
    async fn index(&self, of: &MemoryOf, done: &Committed) -> Result<(), MemoryTrouble> {
        // All facts are indexed, because DeerFlow may have written some.
        let entries: Vec<RecallEntry> = done.document.facts.iter().map(|fact| entry(of, fact)).collect();
        self.db.index(&entries).await?;
        let gone = done.superseded.iter().chain(&done.forgotten).map(ToString::to_string);
        Ok(self.db.unindex(&of.indexed(), RecallKind::Fact, &gone.collect::<Vec<_>>()).await?)
    }
}

/// Returns a digest of the facts in an index.
fn digest_of(document: &MemoryDocument) -> String {
    let facts = document.facts.iter().map(|fact| format!("{}\0{}\0", fact.id, fact.content));
    pudu_base::digest(facts.collect::<String>())
}

fn entry(of: &MemoryOf, fact: &Fact) -> RecallEntry {
    RecallEntry {
        scope: of.indexed(),
        kind: RecallKind::Fact,
        doc: fact.id.to_string(),
        thread: String::new(),
        author: fact.origin.as_ref().and_then(|origin| origin.author_name.clone()).unwrap_or_default(),
        at: fact.created_at.millis(),
        confidence: fact.confidence,
        text: fact.content.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::UserId;
    use pudu_store::DbLocation;

    fn memory_of(agent: Option<&str>) -> MemoryOf {
        MemoryOf { user: UserId::from_raw("ada").unwrap(), agent: agent.map(str::to_owned) }
    }

    async fn memories(home: &Path) -> Memories {
        Memories::new(Db::open(&DbLocation::Memory).await.unwrap(), home, MemoryOptions::default())
    }

    async fn found(memories: &Memories, of: &MemoryOf, question: &str) -> (usize, usize) {
        let limits = RecallLimits { facts: 9, turns: 9 };
        let hits = memories.db.recall(&of.indexed(), question, limits).await.unwrap();
        (hits.facts.len(), hits.turns.len())
    }

    #[tokio::test]
    async fn forgetting_a_fact_removes_only_the_messages_about_it() {
        let home = tempfile::tempdir().unwrap();
        let memories = memories(home.path()).await;
        let id =
            memories.remember(&memory_of(None), "Keeps a falcon named Quillon", "U1", "Ada").await.unwrap();
        let turn = |doc: &str, text: &str| RecallEntry {
            kind: RecallKind::Turn,
            doc: doc.to_owned(),
            text: text.to_owned(),
            ..entry(
                &memory_of(None),
                &Fact::new(FactId::new(doc).unwrap(), text, FactCategory::Goal, 1.0, <_>::default()),
            )
        };
        let turns = [
            turn("m1", "I was out with my falcon Quillon."),
            turn("m2", "A falcon is a bird, as is a kestrel."),
        ];
        memories.db.index(&turns).await.unwrap();
        assert_eq!(found(&memories, &memory_of(None), "falcon").await, (1, 2));
        memories.forget(&memory_of(None), &id).await.unwrap();
        assert_eq!(found(&memories, &memory_of(None), "falcon").await, (0, 1));
        assert!(memories.forget(&memory_of(None), &id).await.is_err(), "the fact is deleted");
    }

    /// Like DeerFlow, another handle does not use the first one's index, and a file is removed by hand.
    #[tokio::test]
    async fn facts_written_or_deleted_by_another_program_are_indexed_with_the_next_question() {
        let home = tempfile::tempdir().unwrap();
        let memories = memories(home.path()).await;
        let id = memories.remember(&memory_of(None), "Keeps a falcon", "U1", "Ada").await.unwrap();
        memories.read_indexed(&memory_of(None)).await.unwrap();
        let store = MemoryStore::new(home.path().to_owned(), MemoryOptions::default());
        let fact = NewFact {
            content: "Owns a sailing boat".to_owned(),
            category: FactCategory::Context,
            confidence: 0.9,
            source: FactSource::manual(),
            origin: None,
        };
        store.add(&memory_of(None).scope().unwrap(), fact, now()).unwrap();
        assert_eq!(found(&memories, &memory_of(None), "boat").await, (0, 0));
        memories.read_indexed(&memory_of(None)).await.unwrap();
        assert_eq!(found(&memories, &memory_of(None), "boat").await, (1, 0));
        store.forget(&memory_of(None).scope().unwrap(), &[FactId::new(&id).unwrap()], now()).unwrap();
        memories.read_indexed(&memory_of(None)).await.unwrap();
        assert_eq!(found(&memories, &memory_of(None), "falcon").await, (0, 0));
        assert_eq!(found(&memories, &memory_of(None), "boat").await, (1, 0));
    }

    #[tokio::test]
    async fn old_facts_are_deleted_for_every_agent() {
        let home = tempfile::tempdir().unwrap();
        let memories = memories(home.path()).await;
        for agent in [None, Some("poet")] {
            memories.remember(&memory_of(agent), "Likes tea", "U1", "Ada").await.unwrap();
        }
        memories.forget_older(Duration::from_secs(3_600)).await.unwrap();
        assert_eq!(found(&memories, &memory_of(None), "tea").await, (1, 0));
        // At a time in the future the facts are old.
        let before = now() + 1_000;
        for agent in [None, Some("poet")] {
            let expire = move |store: &MemoryStore, scope: &MemoryScope, now| {
                Ok(((), store.expire(scope, before, now)?))
            };
            memories.change(&memory_of(agent), expire).await.unwrap();
            assert_eq!(found(&memories, &memory_of(agent), "tea").await, (0, 0));
            assert!(memories.read(&memory_of(agent)).await.unwrap().facts.is_empty());
        }
    }

    #[tokio::test]
    async fn an_export_can_be_imported_and_garbage_cannot() {
        let home = tempfile::tempdir().unwrap();
        let memories = memories(home.path()).await;
        memories.remember(&memory_of(None), "Likes tea", "U1", "Ada").await.unwrap();
        let document = memories.export(&memory_of(None)).await.unwrap();
        memories.remember(&memory_of(None), "Has a car", "U1", "Ada").await.unwrap();
        assert_eq!(memories.import(&memory_of(None), document.clone()).await.unwrap(), 1);
        assert_eq!(memories.export(&memory_of(None)).await.unwrap()["facts"], document["facts"]);
        assert_eq!(found(&memories, &memory_of(None), "car").await, (0, 0));
        for bad in [
            Value::Null,
            serde_json::json!([1]),
            serde_json::json!({"facts": 7}),
            serde_json::json!({"a": 1}),
        ] {
            assert!(memories.import(&memory_of(None), bad.clone()).await.is_err(), "{bad}");
        }
        assert_eq!(found(&memories, &memory_of(None), "tea").await, (1, 0), "no data was lost");
    }
}
