//! Connections to the database: one for the writer, and a pool for readers.

use super::{
    DbEngine,
    postgres::{PgServer, PgWriter},
    readers::Readers,
    schema,
    sqlite::{self, DbFile, MemoryDb, SqliteWriter},
    statement::Tx,
    transaction::CommitError,
    waiter::{Waiter, on_thread},
};
use crate::{
    DbLocation, Result, StoreError,
    availability::{Availability, in_time},
};
use backon::{ExponentialBuilder, Retryable};
use pudu_kit::blocking;
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_util::sync::CancellationToken;

/// Time limit for the first try of a writing transaction on a server.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for the first try of a read on a server.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The writer's connection to the database.
pub(crate) enum WriteLink {
    Sqlite(SqliteWriter),
    Postgres(Box<PgWriter>),
}

/// The readers' connections to the database.
pub(crate) enum ReadLink {
    /// A database in memory, and whether it is closed.
    Memory(MemoryDb, AtomicBool),
    File(Readers<DbFile>),
    Server(Readers<PgServer>),
}

/// Opens the database, migrates it, and creates the connections.
pub(crate) async fn connect(
    location: &DbLocation,
    availability: &Arc<Availability>,
) -> Result<(WriteLink, ReadLink)> {
    match location {
        DbLocation::Memory => {
            let db = MemoryDb::open()?;
            schema::migrate(&mut Tx::Sqlite(&db.lock()))?;
            Ok((
                WriteLink::Sqlite(SqliteWriter::Memory(db.clone())),
                ReadLink::Memory(db, AtomicBool::new(false)),
            ))
        }
        DbLocation::Sqlite(path) => {
            let path = make_file(path)?;
            let connection = open_file(&path).await?;
            let writer = SqliteWriter::File(path.clone(), Some(connection));
            Ok((WriteLink::Sqlite(writer), ReadLink::File(Readers::new(DbFile(path)))))
        }
        DbLocation::Postgres(url) => {
            let server = PgServer::new(url, availability)?;
            let session = server.session(None, DbEngine::Postgres.writing()).await?;
            let (session, migrated) = session.run(schema::migrate).await;
            migrated?;
            let writer = PgWriter { server: server.clone(), session, timeout: WRITE_TIMEOUT };
            Ok((WriteLink::Postgres(Box::new(writer)), ReadLink::Server(Readers::new(server))))
        }
    }
}

/// Opens a file and migrates it. Retries, because SQLite's busy timeout does not cover all conflicts with another
/// process that is opening the file.
async fn open_file(path: &Path) -> Result<rusqlite::Connection> {
    let open = || async {
        let path = path.to_owned();
        let work = move || {
            let connection = sqlite::connect(&path, DbEngine::Sqlite.writing())?;
            schema::migrate(&mut Tx::Sqlite(&connection))?;
            Ok(connection)
        };
        blocking(work, |error| StoreError::Unavailable(error.to_string())).await
    };
    let waits = ExponentialBuilder::default().with_min_delay(Duration::from_millis(20)).with_max_times(8);
    open.retry(waits).when(|error| matches!(error, StoreError::Unavailable(_))).await
}

impl WriteLink {
    /// Returns whether statements block the calling thread.
    pub(crate) fn blocks(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    /// Returns the time limit for the first try of a transaction. Only servers have one, because they can become
    /// unreachable without an error; SQLite's own waits always end.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(writer) => Some(writer.timeout),
        }
    }

    /// Runs a transaction of a batch. `late` is the number of tries that timed out.
    pub(crate) async fn run<B: Send + 'static, T: Send + 'static>(
        &mut self,
        late: &mut u32,
        mut batch: B,
        transaction: impl FnOnce(&mut B, &mut Tx<'_>) -> Result<T, CommitError> + Send + 'static,
    ) -> (B, Result<T, CommitError>) {
        match self {
            Self::Sqlite(writer) => {
                let done = writer.run(|tx| transaction(&mut batch, tx));
                (batch, done)
            }
            Self::Postgres(writer) => writer.run(late, batch, transaction).await,
        }
    }

    pub(crate) async fn close(self) {
        if let Self::Postgres(writer) = self
            && let Some(session) = writer.session
        {
            session.close().await;
        }
    }
}

impl ReadLink {
    /// Runs one read. The time limit doubles after each timeout, so that a slow read can finish.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        is_long: bool,
        late: &mut u32,
        job: &Arc<impl Fn(&mut Tx<'_>) -> Result<T> + Send + Sync + 'static>,
    ) -> Result<T> {
        match self {
            Self::Memory(_, closed) if closed.load(Ordering::Acquire) => Err(StoreError::Closed),
            Self::Memory(db, _) => job(&mut Tx::Sqlite(&db.lock())),
            Self::File(readers) => {
                let reader = readers.acquire().await?;
                let read = || job(&mut Tx::Sqlite(&reader.connection));
                let answered =
                    if is_long && has_other_threads() { tokio::task::block_in_place(read) } else { read() };
                reader.end(&answered);
                answered
            }
            Self::Server(readers) => {
                // Boxed, because connecting needs kilobytes of state, which would enlarge the future of file reads.
                let (mut reader, job) = (Box::pin(readers.acquire()).await?, Arc::clone(job));
                let read = on_thread(CancellationToken::new(), move |waiter: &Waiter| {
                    let answered = job(&mut reader.connection.tx(waiter));
                    reader.end(&answered);
                    answered
                });
                in_time(Some(READ_TIMEOUT), late, read).await
            }
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Memory(_, closed) => closed.store(true, Ordering::Release),
            Self::File(readers) => readers.close().await,
            Self::Server(readers) => readers.close().await,
        }
    }
}

/// Returns whether the runtime has other threads that can run the tasks of this one.
fn has_other_threads() -> bool {
    Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread
}

/// Creates the file with mode 0600, and its parent folders with mode 0700.
fn make_file(path: &Path) -> Result<PathBuf> {
    let refused = |error: io::Error| StoreError::Refused(format!("{}: {error}", path.display()));
    let path = std::path::absolute(path).map_err(refused)?;
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    }
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(refused)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn file(folder: &Path) -> (PathBuf, Readers<DbFile>) {
        let path = folder.join("pudu.db");
        let (_, read) = connect(&DbLocation::Sqlite(path.clone()), &Arc::default()).await.unwrap();
        let ReadLink::File(readers) = read else { panic!("a file has its own readers") };
        (path, readers)
    }

    #[tokio::test]
    async fn readers_cannot_write() {
        let folder = tempfile::TempDir::new().unwrap();
        let (_, readers) = file(folder.path()).await;
        let reader = readers.acquire().await.unwrap();
        let refused = reader.connection.execute("DELETE FROM inbox", []).unwrap_err();
        assert!(refused.to_string().contains("readonly"), "{refused}");
    }

    #[tokio::test]
    async fn a_commit_is_on_disk() {
        let folder = tempfile::TempDir::new().unwrap();
        let (path, _) = file(folder.path()).await;
        let connection = sqlite::connect(&path, DbEngine::Sqlite.writing()).unwrap();
        let pragma =
            |name| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        assert_eq!(pragma("journal_mode").unwrap(), "wal".to_owned().into());
        assert_eq!(pragma("synchronous").unwrap(), 2.into(), "FULL");
    }
}
