//! Files of memory, and the index that goes with them.

use super::rules::{MemoryOf, MemoryTrouble};
use crate::Client;
use pudu_memory::{
    Committed, FactCategory, FactId, FactOrigin, FactSource, MemoryDocument, MemoryError, MemoryScope,
    MemoryStore, NewFact,
};
use pudu_store::{RecallEntry, RecallKind, now};

impl Client {
    /// Returns whether there is memory at all.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.setup().memory.is_some()
    }

    /// Returns what is remembered.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn remembered(&self, of: &MemoryOf) -> Result<MemoryDocument, MemoryTrouble> {
        self.with_memory(of, |store, scope, now| store.read(&scope, now)).await
    }

    /// Works on the files of a memory, where that may block.
    pub(super) async fn with_memory<T: Send + 'static>(
        &self,
        of: &MemoryOf,
        work: impl FnOnce(MemoryStore, MemoryScope, i64) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, MemoryTrouble> {
        let setup = self.setup();
        let options = setup.memory.as_ref().map(|memory| memory.rules.options.clone()).unwrap_or_default();
        let (home, scope) = (self.0.folders.home().to_owned(), of.scope()?);
        let done = tokio::task::spawn_blocking(move || work(MemoryStore::new(home, options), scope, now()));
        Ok(done.await.map_err(|_| MemoryTrouble::Broken)??)
    }

    /// Remembers what a person says to be remembered, and returns its id.
    ///
    /// # Errors
    /// When it cannot be: it is empty, too long, known already, or its files cannot be written.
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
        let added = self.with_memory(of, move |store, scope, now| store.add(&scope, new, now)).await?;
        self.index_facts(of, &added.1).await?;
        Ok(added.0.to_string())
    }

    /// Forgets a fact for good.
    ///
    /// # Errors
    /// When there is none with that id, or its files cannot be written.
    pub async fn forget(&self, of: &MemoryOf, id: &str) -> Result<(), MemoryTrouble> {
        let id = FactId::new(id).map_err(|_| MemoryError::UnknownFact(id.to_owned()))?;
        let done = self.with_memory(of, move |store, scope, now| store.forget(&scope, &[id], now)).await?;
        self.index_facts(of, &done).await
    }

    /// Forgets all that is remembered of a user or a room, of every agent.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub async fn forget_all(&self, of: &MemoryOf) -> Result<(), MemoryTrouble> {
        let user = of.user.clone();
        // The index first: what is found no more is told no more.
        self.0.db.forget_user(&of.user).await?;
        self.with_memory(of, move |store, _, now| store.clear(&user, now).map(drop)).await
    }

    /// Brings the index to what was committed.
    pub(super) async fn index_facts(&self, of: &MemoryOf, done: &Committed) -> Result<(), MemoryTrouble> {
        // All of them: DeerFlow may have written some since.
        let entries: Vec<RecallEntry> = done.document.facts.iter().map(|fact| entry(of, fact)).collect();
        self.0.db.index(&entries).await?;
        let gone = done.superseded.iter().chain(&done.forgotten).map(ToString::to_string);
        Ok(self.0.db.unindex(&of.indexed(), RecallKind::Fact, &gone.collect::<Vec<_>>()).await?)
    }
}

fn entry(of: &MemoryOf, fact: &pudu_memory::Fact) -> RecallEntry {
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
