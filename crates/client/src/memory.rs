//! Memory of users in runs: what is told of it with a question, and what is learnt from an answer.
//!
//! What is said alone with the agent belongs to the person, and what is said in a room to the room: nothing is told of one
//! where the other talks. Nobody waits for what is learnt.

pub(crate) mod learn;
pub(crate) mod recall;

pub use learn::LearnRules;

use crate::{Client, RunTask};
use pudu_base::{Model, UserId};
use pudu_memory::{
    FactCategory, FactId, FactOrigin, FactSource, MemoryDocument, MemoryError, MemoryOptions, MemoryScope,
    MemoryStore, NewFact,
};
use pudu_store::{RecallScope, StoreError, now};
use std::sync::Arc;

/// DeerFlow's name for the folder of the lead agent's facts.
const LEAD_BUCKET: &str = "__default__";

/// How memory is used.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRules {
    /// Whether something of it is told with a question.
    pub injection: bool,
    /// What is learnt from answers; nothing if `None`.
    pub learning: Option<LearnRules>,
    /// Numbers that it works by.
    pub options: MemoryOptions,
}

/// The rules, with the model that reads conversations.
#[derive(Clone)]
pub(crate) struct MemorySetup {
    pub(crate) rules: MemoryRules,
    pub(crate) model: Arc<dyn Model>,
}

/// A memory: a user's or a room's, of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOf {
    /// The user or the room.
    pub user: UserId,
    /// The agent; the lead agent if none.
    pub agent: Option<String>,
}

/// Reason why memory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryTrouble {
    /// Its files could not.
    #[error(transparent)]
    Files(#[from] MemoryError),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The work broke down.
    #[error("the work on memory broke down")]
    Broken,
}

impl MemoryOf {
    /// Returns that of a run.
    pub(crate) fn run(task: &RunTask) -> Self {
        Self { user: task.room.clone().unwrap_or_else(|| task.user.clone()), agent: task.agent.clone() }
    }

    fn scope(&self) -> Result<MemoryScope, MemoryError> {
        match &self.agent {
            Some(agent) => Ok(MemoryScope::of_agent(self.user.clone(), agent)?),
            None => Ok(MemoryScope::of(self.user.clone())),
        }
    }

    fn indexed(&self) -> RecallScope {
        let agent = self.agent.as_deref().unwrap_or(LEAD_BUCKET).to_ascii_lowercase();
        RecallScope { user: self.user.clone(), agent }
    }
}

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
    async fn with_memory<T: Send + 'static>(
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
}

impl Client {
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
}
