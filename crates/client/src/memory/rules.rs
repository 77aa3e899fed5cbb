//! Rules of memory, and the owner of a memory.

use crate::{
    RunTask,
    models::{KnownModel, named_model},
};
use pudu_base::{Model, UserId};
use pudu_memory::{DEFAULT_AGENT, MemoryError, MemoryOptions, MemoryScope};
use pudu_store::{RecallScope, StoreError};
use std::{sync::Arc, time::Duration};

/// The actor that decides which facts are stored and looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryMode {
    /// Pudu: it reads conversations, and recalls entries that fit a question.
    #[default]
    Middleware,
    /// The model, with tools; it gets only summaries in its prompt.
    Tool,
}

/// The rules of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRules {
    /// The actor that decides.
    pub mode: MemoryMode,
    /// Whether memory is added to questions.
    pub injection: bool,
    /// Time without an answer after which a conversation is read.
    pub debounce: Duration,
    /// Maximum number of waiting conversations; beyond it, one without a statement of a person about themselves is
    /// dropped. 0 is no limit.
    pub max_waiting: u32,
    /// Time that a stopping process spends on reading waiting conversations.
    pub last_reading: Duration,
    /// Whether people who are not joined to a user share one user.
    pub shared_people: bool,
    /// The memory options.
    pub options: MemoryOptions,
}

impl Default for MemoryRules {
    fn default() -> Self {
        Self {
            mode: MemoryMode::Middleware,
            injection: true,
            debounce: Duration::from_secs(30),
            max_waiting: 1_000,
            last_reading: Duration::from_secs(30),
            shared_people: false,
            options: MemoryOptions::default(),
        }
    }
}

/// The rules, with the model that reads conversations.
#[derive(Clone)]
pub struct MemorySetup {
    pub(crate) rules: MemoryRules,
    pub(crate) model: Arc<dyn Model>,
    /// Its name, if the configuration names one.
    pub(crate) named: Option<String>,
}

impl MemorySetup {
    /// Makes the setup with the named model, the default if `None` or unknown. `None` without any model.
    #[must_use]
    pub fn new(rules: MemoryRules, model: Option<&str>, models: &[KnownModel]) -> Option<Self> {
        let default = || models.first().map(|(_, model)| model.clone());
        let named = model.map(str::to_owned);
        Some(Self { rules, model: named_model(models, model).or_else(default)?, named })
    }
}

/// A memory: a user's or a room's, of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryOf {
    /// The user or the room.
    pub user: UserId,
    /// The agent; the lead agent if none.
    pub agent: Option<String>,
}

/// Reason why memory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryTrouble {
    /// Its files could not be used.
    #[error(transparent)]
    Files(#[from] MemoryError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The work broke down.
    #[error("the work on memory broke down")]
    Broken,
}

impl MemoryOf {
    /// Returns the memory of a run.
    pub(crate) fn run(task: &RunTask) -> Self {
        Self { user: task.room.clone().unwrap_or_else(|| task.user.clone()), agent: task.agent.clone() }
    }

    /// Returns the memory of a scope.
    pub(super) fn from_scope(scope: &MemoryScope) -> Self {
        let agent = Some(scope.agent().to_owned()).filter(|agent| agent != DEFAULT_AGENT);
        Self { user: scope.user().clone(), agent }
    }

    pub(super) fn scope(&self) -> Result<MemoryScope, MemoryError> {
        match &self.agent {
            Some(agent) => Ok(MemoryScope::of_agent(self.user.clone(), agent)?),
            None => Ok(MemoryScope::for_user(self.user.clone())),
        }
    }

    pub(super) fn indexed(&self) -> RecallScope {
        let agent = self.agent.as_deref().unwrap_or(DEFAULT_AGENT).to_ascii_lowercase();
        RecallScope { user: self.user.clone(), agent }
    }
}
