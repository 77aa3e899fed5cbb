//! The rights of a user: to export all data stored about them, and to have it deleted.
//!
//! A person is a user together with their platform identities, which the caller has to resolve.

mod export;
mod forget;
#[cfg(test)]
mod tests;
mod transcript;

pub use export::ExportedPerson;
pub use forget::{ForgottenPerson, forget_person};

use pudu_agent::{Agent, SecretError, SecretStore};
use pudu_kit::blocking;
use pudu_memory::{MemoryError, MemoryOptions, MemoryStore};
use pudu_sandbox::Folders;
use pudu_store::{Db, StoreError};
use std::{io, path::PathBuf};

/// The store and the folders with users' data.
#[derive(Clone)]
pub struct PersonData {
    db: Db,
    folders: Folders,
    memory: MemoryStore,
    secrets: SecretStore,
}

/// Reason why an export or a deletion did not finish. Completed steps are not undone.
#[derive(Debug, thiserror::Error)]
pub enum PersonError {
    /// The agent is working for the person.
    #[error("the agent is working for this person: wait until it is done, or /stop it, and try again")]
    AtWork,
    /// The store failed.
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
    /// Memory failed.
    #[error("memory failed: {0}")]
    Memory(#[from] MemoryError),
    /// The secrets cannot be read or removed.
    #[error("secrets: {0}")]
    Secrets(#[from] SecretError),
    /// A thread cannot be read.
    #[error("a thread cannot be read: {0}")]
    Thread(#[from] pudu_base::LogError),
    /// A file operation failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The I/O error.
        why: io::Error,
    },
    /// A blocking task panicked.
    #[error("a background task panicked")]
    Broken,
}

impl PersonData {
    /// Wraps a store and the folders of its users.
    #[must_use]
    pub fn new(db: Db, folders: Folders, memory: MemoryOptions) -> Self {
        let memory = MemoryStore::new(folders.home().to_owned(), memory);
        let secrets = SecretStore::new(folders.home().join("users"));
        Self { db, folders, memory, secrets }
    }

    /// Wraps the store, the folders and the memory of an agent.
    #[must_use]
    pub fn from_agent(agent: &Agent) -> Self {
        let setup = agent.setup();
        let options = setup.memory.as_ref().map(|memory| memory.rules.options.clone()).unwrap_or_default();
        Self::new(agent.db().clone(), agent.folders().clone(), options)
    }

    /// Runs blocking work on files.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, PersonError> + Send + 'static,
    ) -> Result<T, PersonError> {
        let this = self.clone();
        blocking(move || work(&this), |_| PersonError::Broken).await
    }
}
