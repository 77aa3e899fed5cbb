//! Reasons why a home cannot be moved in at all. What is wrong with one thing in it is a line of the report.

use pudu_memory::MemoryError;
use pudu_store::StoreError;
use std::{io, path::PathBuf};

/// A failure of the whole import. Whatever was done before it stays, and the next import goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is nothing of DeerFlow's.
    #[error("{} is no DeerFlow home: it has no `.deer-flow`, and neither `users`, `data` nor `channels` as that folder has", .0.display())]
    NoHome(PathBuf),
    /// The named folder is not there.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// A file was named.
    #[error("{} is no folder: name DeerFlow's project folder, or its `.deer-flow`", .0.display())]
    NoFolder(PathBuf),
    /// Somebody writes into the database.
    #[error("{} is being written: stop DeerFlow first, and import again", .0.display())]
    InUse(PathBuf),
    /// DeerFlow's database cannot be read.
    #[error("DeerFlow's database cannot be read: {0}")]
    Source(String),
    /// pudu's store failed.
    #[error("the store cannot be written: {0}")]
    Store(#[from] StoreError),
    /// pudu's memory failed.
    #[error("memory cannot be written: {0}")]
    Memory(#[from] MemoryError),
    /// The system failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

impl ImportError {
    /// A database's address may have a password in it, and its errors do not repeat it.
    #[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
    pub(crate) fn database(error: sqlx::Error) -> Self {
        Self::Source(error.to_string())
    }

    pub(crate) fn io(path: impl Into<PathBuf>, why: io::Error) -> Self {
        Self::Io { path: path.into(), why }
    }
}
