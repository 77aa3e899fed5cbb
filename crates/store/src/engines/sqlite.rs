//! Connections to a SQLite database. Statements run in the calling thread, because handing one to another thread takes
//! longer than the statement.

use super::{DbEngine, readers::Connect, statement::Tx, transaction::CommitError};
use crate::{Result, StoreError};
use pudu_kit::simulation::Simulation;
use rusqlite::{Connection, OpenFlags};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Number of cached prepared statements, about as many as there are in the code.
const MAX_PREPARED_STATEMENTS: usize = 96;

/// A database in memory. It exists as long as its only connection.
#[derive(Clone)]
pub(crate) struct MemoryDb(Arc<Mutex<Connection>>);

impl MemoryDb {
    pub(crate) fn open() -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(prepared(Connection::open_in_memory()?, "")?))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's connection.
pub(crate) enum SqliteWriter {
    /// A file, and the connection to it if one is open.
    File(PathBuf, Option<Connection>),
    Memory(MemoryDb),
}

impl SqliteWriter {
    /// Runs a transaction, which is rolled back if it fails. The connection to a file is reused if it can still read,
    /// because on a full disk a new one may find no room for its shared memory.
    pub(crate) fn run<T>(
        &mut self,
        transaction: impl FnOnce(&mut Tx<'_>) -> Result<T, CommitError>,
    ) -> Result<T, CommitError> {
        match self {
            Self::Memory(shared) => {
                let connection = shared.lock();
                let done = transaction(&mut Tx::Sqlite(&connection));
                if done.is_err() {
                    roll_back(&connection)?;
                }
                done
            }
            Self::File(path, connection) => {
                step("begin")?;
                let open = match connection.take() {
                    Some(open) => open,
                    None => connect(path, DbEngine::Sqlite.writing())?,
                };
                let done = transaction(&mut Tx::Sqlite(&open));
                if done.is_ok() || roll_back(&open).is_ok() {
                    *connection = Some(open);
                }
                done
            }
        }
    }
}

/// Rolls back an open transaction (SQLite ends it itself if the disk is full), and checks that reads still work.
fn roll_back(connection: &Connection) -> Result<()> {
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    Ok(connection.query_row("SELECT COUNT(*) FROM schema_version", [], |_| Ok(()))?)
}

/// A file whose reading connections are pooled.
pub(crate) struct DbFile(pub(crate) PathBuf);

impl Connect for DbFile {
    type Connection = Connection;

    async fn connect(&self, earlier: Option<Connection>) -> Result<Connection> {
        step("read")?;
        match earlier {
            Some(connection) => Ok(connection),
            None => connect(&self.0, DbEngine::Sqlite.reading()),
        }
    }

    async fn close(_: Connection) {}
}

/// Reports a step to this thread's simulation, which may inject a disk error.
pub(crate) fn step(name: &str) -> Result<()> {
    Simulation::step(name).map_err(StoreError::Unavailable)
}

/// Opens a connection to a file and prepares it.
pub(crate) fn connect(path: &Path, prepare: &str) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    prepared(Connection::open_with_flags(path, flags)?, prepare)
}

fn prepared(connection: Connection, prepare: &str) -> Result<Connection> {
    connection.execute_batch(prepare)?;
    connection.set_prepared_statement_cache_capacity(MAX_PREPARED_STATEMENTS);
    Ok(connection)
}
