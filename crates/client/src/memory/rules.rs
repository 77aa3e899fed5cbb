//! Rules of memory, and whose a memory is.

use crate::RunTask;
use pudu_base::{Model, UserId};
use pudu_memory::{DEFAULT_AGENT, MemoryError, MemoryOptions, MemoryScope};
use pudu_store::{RecallScope, StoreError};
use std::{sync::Arc, time::Duration};

/// The one who decides what is remembered and looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryMode {
    /// Pudu: it reads conversations, and tells what fits a question.
    #[default]
    Middleware,
    /// The model, with tools; it is told summaries alone.
    Tool,
}

/// How memory is used.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRules {
    /// The one who decides.
    pub mode: MemoryMode,
    /// Whether something of it is told with a question.
    pub injection: bool,
    /// A conversation is read when nothing was answered in it for so long.
    pub debounce: Duration,
    /// So many conversations wait to be read; one in which nobody tells something of themselves is dropped beyond. 0 is no
    /// limit.
    pub max_waiting: u32,
    /// A process that stops reads what waits for so long.
    pub last_reading: Duration,
    /// Whether people who joined nobody are one user together.
    pub shared_people: bool,
    /// Numbers that it works by.
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
pub(crate) struct MemorySetup {
    pub(crate) rules: MemoryRules,
    pub(crate) model: Arc<dyn Model>,
    /// Its name, if the configuration names one.
    pub(crate) named: Option<String>,
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

    /// Returns that of a scope.
    pub(super) fn of(scope: &MemoryScope) -> Self {
        let agent = Some(scope.agent().to_owned()).filter(|agent| agent != DEFAULT_AGENT);
        Self { user: scope.user().clone(), agent }
    }

    pub(super) fn scope(&self) -> Result<MemoryScope, MemoryError> {
        match &self.agent {
            Some(agent) => Ok(MemoryScope::of_agent(self.user.clone(), agent)?),
            None => Ok(MemoryScope::of(self.user.clone())),
        }
    }

    pub(super) fn indexed(&self) -> RecallScope {
        let agent = self.agent.as_deref().unwrap_or(DEFAULT_AGENT).to_ascii_lowercase();
        RecallScope { user: self.user.clone(), agent }
    }
}
