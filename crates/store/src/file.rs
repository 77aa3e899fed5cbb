//! Connections to a SQLite file, and the writer's among them. The owner of a connection works with it in its own
//! thread, so that a statement costs no hand-over to another thread.

use crate::{StoreError, engine::DbEngine, statement::Tx};
use pudu_kit::simulation::Simulation;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};

/// How many prepared statements are kept: there are about as many in the code.
const MAX_PREPARED_STATEMENTS: usize = 96;

/// A file, and the connection to it while there is one.
pub(crate) struct DbFile {
    path: PathBuf,
    connection: Option<Connection>,
}

impl DbFile {
    pub(crate) fn open(path: PathBuf) -> Result<Self, StoreError> {
        let connection = Some(connect(&path, DbEngine::Sqlite.writing())?);
        Ok(Self { path, connection })
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self) -> Result<Tx<'_>, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.path, DbEngine::Sqlite.writing())?,
        };
        let connection = self.connection.insert(connection);
        step("begin")?;
        connection.execute_batch(DbEngine::Sqlite.begin())?;
        Ok(Tx::File(connection))
    }

    pub(crate) fn commit(&mut self) -> Result<(), StoreError> {
        let connection = self.connection.as_ref().ok_or(StoreError::Closed)?;
        step("commit")?;
        Ok(connection.execute_batch("COMMIT")?)
    }

    /// Rolls back a failed transaction. SQLite itself ends one when the disk is full. The connection is
    /// used again if it can still read: while a disk is full, a new one may find no room for its shared memory.
    pub(crate) fn roll_back(&mut self) {
        let usable = |connection: &Connection| {
            if !connection.is_autocommit() {
                connection.execute_batch("ROLLBACK")?;
            }
            connection.query_row("SELECT COUNT(*) FROM schema_version", [], |_| Ok(()))
        };
        self.connection = self.connection.take().filter(|connection| usable(connection).is_ok());
    }
}

/// Reports a step to the simulation of this thread, whose disk may fail.
pub(crate) fn step(name: &str) -> Result<(), StoreError> {
    Simulation::step(name).map_err(StoreError::Unavailable)
}

/// Opens a connection and prepares it.
pub(crate) fn connect(path: &Path, prepare: &str) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(prepare)?;
    connection.set_prepared_statement_cache_capacity(MAX_PREPARED_STATEMENTS);
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DbLocation, pools};
    use std::sync::Arc;

    #[tokio::test]
    async fn a_commit_is_on_disk() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("pudu.db");
        pools::connect(&DbLocation::Sqlite(path.clone()), &Arc::default()).await.unwrap();
        let connection = connect(&path, DbEngine::Sqlite.writing()).unwrap();
        let pragma =
            |name| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        assert_eq!(pragma("journal_mode").unwrap(), "wal".to_owned().into());
        assert_eq!(pragma("synchronous").unwrap(), 2.into(), "FULL");
    }
}
