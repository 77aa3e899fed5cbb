//! Refusals and failures of work on agents.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Maximum number of agents before a new one is refused.
pub(super) const FULL: usize = 100;

/// Maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// Why something cannot be the name of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// It is longer than a name may be.
    #[error("it has more than {MAX_NAME_CHARS} characters")]
    TooLong,
    /// It has characters that no name has, or nothing but hyphens.
    #[error("it is made of letters, digits and hyphens")]
    Characters,
    /// It has another meaning where agents are chosen.
    #[error("it means something else already")]
    Taken,
}

/// Why something was not done to an agent. The texts are for people, and name no folder.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It cannot be a name.
    #[error("`{name}` cannot be the name of an agent: {why}")]
    Name {
        /// The given name.
        name: String,
        /// Why it is not allowed.
        why: NameProblem,
    },
    /// There is no such agent.
    #[error("There is no agent `{0}`.")]
    Unknown(String),
    /// There is one of that name.
    #[error("there is an agent `{0}` already")]
    Exists(String),
    /// It cannot be understood.
    #[error("The agent `{name}` cannot be used: {why}.")]
    Broken {
        /// Its name.
        name: String,
        /// The cause, and the remedy.
        why: String,
    },
    /// It lies where older versions kept agents.
    #[error(
        "`{0}` lies in the folder of older versions and is not changed there; move it from `agents` to `users/default/agents` in the home"
    )]
    Legacy(String),
    /// The agent is shared, and the requester may change their own agents only.
    #[error("`{0}` is shared by everybody: an approver or an administrator changes it")]
    Shared(String),
    /// A value of the agent is invalid.
    #[error("{0}")]
    Wrong(String),
    /// There are as many as there may be.
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

    /// Returns the error of a look-up that broke down.
    #[must_use]
    pub fn broken(error: tokio::task::JoinError) -> Self {
        Self::Io { path: PathBuf::from("agents"), why: io::Error::other(error) }
    }

    /// Returns the error without paths of this machine, which go to the log.
    #[must_use]
    pub fn public_message(&self) -> String {
        match self {
            Self::Io { path, why } => {
                tracing::error!(path = %path.display(), %why, "failed to read or write agent files");
                "that could not be read or kept; whoever runs this finds the reason in the log".to_owned()
            }
            other => other.to_string(),
        }
    }
}
