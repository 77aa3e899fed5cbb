//! Reasons why memory was not read or changed, grouped by how the caller can react.

use std::{io, path::PathBuf};

/// A failure of memory.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Another program held the lock until the timeout; the caller can retry later.
    #[error("{} is locked by another program for more than {seconds} seconds", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// The wait, in seconds.
        seconds: u64,
    },
    /// The part of memory to be written has changed since it was read; the caller can read it again and retry.
    #[error("memory changed in the meantime ({what}); read it again and retry")]
    Conflict {
        /// The fact or summary that both sides changed.
        what: String,
    },
    /// There is no such fact.
    #[error("there is no memory fact `{0}`")]
    UnknownFact(String),
    /// The request is invalid.
    #[error("{0}")]
    Refused(MemoryRefusal),
    /// A broken file would have to be overwritten; it was left unchanged.
    #[error("{} is broken ({why}); repair it or move it away", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// Memory of version 1.0 cannot be converted to 2.0 without loss; nothing was changed.
    #[error("{} cannot be brought to version 2.0: {why}", path.display())]
    Migration {
        /// The file of version 1.0, or its backup.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The system failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

/// A request that memory rejects, and that cannot succeed if repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryRefusal {
    /// A fact without text.
    #[error("a fact needs text")]
    EmptyContent,
    /// A fact that is too long.
    #[error("a fact can have at most {max} characters")]
    TooLong {
        /// The limit, in characters.
        max: usize,
    },
    /// The same fact already exists.
    #[error("this fact is already stored as `{id}`")]
    Duplicate {
        /// The existing fact.
        id: String,
    },
    /// Memory is full of more valuable facts.
    #[error("memory is full ({max} facts), and each is more important than this one; forget one first")]
    NoRoom {
        /// The limit, in facts.
        max: usize,
    },
    /// A confidence that is not between 0 and 1.
    #[error("confidence must be a number from 0 to 1")]
    BadConfidence,
    /// A text with a password, a key, a PIN, or the number of a card or a document.
    #[error(
        "this contains a secret (a password, a key, a PIN or a card number), and secrets are never stored"
    )]
    Secret,
    /// A name that is invalid for a fact.
    #[error("`{0}` cannot name a fact: letters, digits, `_` and `-` only")]
    BadFactId(String),
    /// A name that is invalid for an agent.
    #[error("`{0}` cannot name an agent: letters, digits and `-` only")]
    BadAgent(String),
    /// A document that is not memory.
    #[error("this is not a memory document: {0}")]
    BadDocument(String),
}

impl From<MemoryRefusal> for MemoryError {
    fn from(refusal: MemoryRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl MemoryError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |why| Self::Io { path, why }
    }
}
