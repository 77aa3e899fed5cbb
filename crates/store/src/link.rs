//! The ways of the writer to its database.

use crate::{engine::DbEngine, file::DbFile};
use sqlx::AnyPool;

/// The writer's way to the database.
pub(crate) enum WriteLink {
    /// A file, with a connection of the writer's own.
    File(DbFile),
    /// A server, or a database in memory.
    Pool(AnyPool, DbEngine),
}
