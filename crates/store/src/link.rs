//! The ways to the database.

use crate::{engine::DbEngine, file::DbFile, readers::FileReaders};
use sqlx::AnyPool;

/// The writer's way to the database.
pub(crate) enum WriteLink {
    /// A file, with a connection of the writer's own.
    File(DbFile),
    /// A server, or a database in memory.
    Pool(AnyPool, DbEngine),
}

/// The readers' way to the database.
pub(crate) enum ReadLink {
    /// A file, with connections of the store's own.
    File(FileReaders),
    /// A server, or a database in memory.
    Pool(AnyPool),
}
