//! The rights of one user: to export all data stored about them, and to be forgotten.
//!
//! A person is a user, together with the platform accounts of that user. The caller resolves these.

mod export;
mod forget;
#[cfg(test)]
mod tests;
mod transcript;

pub use export::ExportedPerson;
pub use forget::ForgottenPerson;

use crate::secrets::{SecretError, SecretStore};
use pudu_kit::blocking;
use pudu_memory::{MemoryError, MemoryOptions, MemoryStore};
use pudu_sandbox::Folders;
use pudu_store::{Db, StoreError};
use std::{io, path::PathBuf};

/// The store and the folders, which hold data of users.
#[derive(Clone)]
pub struct PersonData {
    db: Db,
    folders: Folders,
    memory: MemoryStore,
    secrets: SecretStore,
}

/// Reason why an export or a deletion did not finish. Steps done before remain done.
#[derive(Debug, thiserror::Error)]
pub enum PersonError {
    /// The agent works for the person.
    #[error("the agent works for this person just now: let it end, or /stop it, and try again")]
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
    /// The system failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// The work broke down.
    #[error("the work broke down")]
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

    /// Runs blocking work on files.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, PersonError> + Send + 'static,
    ) -> Result<T, PersonError> {
        let own = self.clone();
        blocking(move || work(&own), |_| PersonError::Broken).await
    }
}
