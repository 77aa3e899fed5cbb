//! Connections to a SQLite database. Statements are run in the thread that asks: handing one over to another thread
//! takes longer than running it.

use super::{DbEngine, readers::Connect, statement::Tx, transaction::CommitError};
use crate::{Result, StoreError};
use pudu_kit::simulation::Simulation;
use rusqlite::{Connection, OpenFlags};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many prepared statements are kept: there are about as many in the code.
const MAX_PREPARED_STATEMENTS: usize = 96;

/// A database in memory, which lives as long as its one connection.
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

/// The writer's way to a database.
pub(crate) enum SqliteWriter {
    /// A file, and the connection to it while there is one.
    File(PathBuf, Option<Connection>),
    Memory(MemoryDb),
}

impl SqliteWriter {
    /// Runs a transaction, which is rolled back if it fails. The connection to a file is used again if it can still read:
    /// while a disk is full, a new one may find no room for its shared memory.
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

/// SQLite itself ends a transaction when the disk is full.
fn roll_back(connection: &Connection) -> Result<()> {
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    Ok(connection.query_row("SELECT COUNT(*) FROM schema_version", [], |_| Ok(()))?)
}

/// A file, and its connections that read.
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

/// Reports a step to the simulation of this thread, whose disk may fail.
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
