//! Errors of operations on agents.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Maximum number of agents before a new one is refused.
pub(super) const FULL: usize = 100;

/// Maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// Why a name is invalid for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// It is too long.
    #[error("it can have at most {MAX_NAME_CHARS} characters")]
    TooLong,
    /// It has invalid characters, or only hyphens.
    #[error("use letters, digits and hyphens")]
    Characters,
    /// It is reserved.
    #[error("it has another meaning")]
    Taken,
}

/// Why an operation on an agent failed. The texts are for people.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The name is invalid.
    #[error("`{name}` cannot be an agent's name: {why}")]
    Name {
        /// The given name.
        name: String,
        /// Why it is not allowed.
        why: NameProblem,
    },
    /// There is no such agent.
    #[error("There is no agent `{0}`.")]
    Unknown(String),
    /// The name is taken.
    #[error("the agent `{0}` already exists")]
    Exists(String),
    /// Its files are invalid.
    #[error("The agent `{name}` cannot be used: {why}.")]
    Broken {
        /// Its name.
        name: String,
        /// The cause and the remedy.
        why: String,
    },
    /// It is in the folder of agents of older versions.
    #[error(
        "`{0}` is in the folder of older versions, where agents are read-only: move it from `agents` to `users/default/agents` in the home"
    )]
    Legacy(String),
    /// The agent is shared, and the requester may only change their own agents.
    #[error("`{0}` is shared by all users: only an approver or an administrator can change it")]
    Shared(String),
    /// A value of the agent is invalid.
    #[error("{0}")]
    Wrong(String),
    /// There are too many agents.
    #[error("there are {0} agents already; remove one first")]
    Full(usize),
    /// The system failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

impl AgentError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::Io { path: path.to_owned(), why }
    }

    /// Returns the error for a look-up that panicked.
    #[must_use]
    pub fn broken(error: tokio::task::JoinError) -> Self {
        Self::Io { path: PathBuf::from("agents"), why: io::Error::other(error) }
    }

    /// Returns the error without paths of the host, which are logged instead.
    #[must_use]
    pub fn public_message(&self) -> String {
        match self {
            Self::Io { path, why } => {
                tracing::error!(path = %path.display(), %why, "failed to read or write agent files");
                "the agent's files could not be read or written; the log contains the reason".to_owned()
            }
            other => other.to_string(),
        }
    }
}
