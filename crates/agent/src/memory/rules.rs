//! Memory rules, and the owner of a memory.

use crate::{
    RunTask,
    models::{KnownModel, named_model},
};
use pudu_base::{Model, UserId};
use pudu_memory::{DEFAULT_AGENT, MemoryError, MemoryOptions, MemoryScope};
use pudu_store::{RecallScope, StoreError};
use std::{sync::Arc, time::Duration};

/// Whether pudu or the model decides which facts to store and to look up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryMode {
    /// pudu reads conversations, and recalls entries that match a question.
    #[default]
    Middleware,
    /// The model decides, with tools. Its prompt contains only summaries.
    Tool,
}

/// Memory rules.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRules {
    /// Whether pudu or the model decides which facts to store and to look up.
    pub mode: MemoryMode,
    /// Whether memory is added to questions.
    pub injection: bool,
    /// How long after its last answer a conversation is read.
    pub debounce: Duration,
    /// Maximum number of conversations waiting to be read; 0 for no limit. Beyond it, a new conversation is dropped
    /// unless a person says something about themselves in it.
    pub max_waiting: u32,
    /// Maximum time for reading waiting conversations at shutdown.
    pub last_reading: Duration,
    /// Whether people who are not linked to a user share one user.
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
    /// The rules.
    pub rules: MemoryRules,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The configured name of the model, if any.
    pub named: Option<String>,
}

impl MemorySetup {
    /// Creates the setup with the named model, or the default if it is `None` or unknown. Returns `None` if there are
    /// no models.
    #[must_use]
    pub fn new(rules: MemoryRules, model: Option<&str>, models: &[KnownModel]) -> Option<Self> {
        let default = || models.first().map(|(_, model)| model.clone());
        let named = model.map(str::to_owned);
        Some(Self { rules, model: named_model(models, model).or_else(default)?, named })
    }
}

/// Identifies a memory: a user's or a group's, for one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryOf {
    /// The user or the group.
    pub user: UserId,
    /// The agent; `None` for the lead agent.
    pub agent: Option<String>,
}

/// Why a memory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryTrouble {
    /// Its files could not be read or written.
    #[error(transparent)]
    Files(#[from] MemoryError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The code panicked.
    #[error("an internal error occurred while memory was used")]
    Broken,
}

impl MemoryOf {
    /// Returns the memory of a run.
    pub fn run(task: &RunTask) -> Self {
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
