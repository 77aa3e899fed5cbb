//! Errors that prevent an import. Problems with individual items are listed in the report.

use pudu_memory::MemoryError;
use pudu_store::StoreError;
use std::{io, path::PathBuf};

/// A failure of the whole import. Imported items are kept, and the next import resumes.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The folder is not a DeerFlow home.
    #[error("{} is not a DeerFlow home: it contains neither `.deer-flow` nor `users`, `data` or `channels`", .0.display())]
    NoHome(PathBuf),
    /// The folder does not exist.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// The path is a file.
    #[error("{} is not a folder; give DeerFlow's project folder or its `.deer-flow`", .0.display())]
    NotAFolder(PathBuf),
    /// Another process is writing to the database.
    #[error("{} is in use; stop DeerFlow and import again", .0.display())]
    InUse(PathBuf),
    /// DeerFlow's database cannot be read.
    #[error("cannot read DeerFlow's database: {0}")]
    Source(String),
    /// pudu's store failed.
    #[error("cannot write to the store: {0}")]
    Store(#[from] StoreError),
    /// pudu's memory failed.
    #[error("cannot write to memory: {0}")]
    Memory(#[from] MemoryError),
    /// A file operation failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The operating system's error.
        why: io::Error,
    },
}

impl From<rusqlite::Error> for ImportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Source(error.to_string())
    }
}

impl ImportError {
    /// Converts an sqlx error. sqlx errors never contain the URL's password.
    #[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
    pub(crate) fn database(error: sqlx::Error) -> Self {
        Self::Source(error.to_string())
    }

    pub(crate) fn io(path: impl Into<PathBuf>, why: io::Error) -> Self {
        Self::Io { path: path.into(), why }
    }
}
