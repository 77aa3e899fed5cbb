//! Connections to the database: the pools of those that write and read, and sessions of their own.

use crate::{
    DbLocation, StoreError,
    availability::Availability,
    connection::{ACQUIRE_TIMEOUT, open},
    engine::DbEngine,
    file::DbFile,
    link::{ReadLink, WriteLink},
    readers::{FileReaders, IDLE_TIMEOUT, MAX_READERS},
    schema,
};
use backon::{ExponentialBuilder, Retryable};
use pudu_kit::blocking;
use sqlx::{
    Any, AnyConnection, AnyPool, Connection,
    any::{AnyConnectOptions, AnyPoolOptions},
    pool::PoolConnection,
};
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// Maximum number of times that a late try doubles the time of the next one.
const MAX_DOUBLINGS: u32 = 7;
/// A connection that was not used for this long is tried before it is.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A try that takes longer shows that the server is gone.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// The ways to the database.
pub(crate) struct DbConnections {
    pub(crate) engine: DbEngine,
    pub(crate) write: WriteLink,
    pub(crate) read: ReadLink,
    /// All pools among them.
    pub(crate) pools: Vec<AnyPool>,
}

/// Limits the time of a call, if there is a limit: the time doubles after each late try.
pub(crate) async fn in_time<T, E: From<StoreError>>(
    timeout: Option<Duration>,
    late: &mut u32,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let Some(timeout) = timeout else { return call.await };
    let timeout = timeout * 2u32.pow((*late).min(MAX_DOUBLINGS));
    let outcome = tokio::time::timeout(timeout, call).await;
    *late += u32::from(outcome.is_err());
    outcome.unwrap_or_else(|_| Err(StoreError::late(timeout).into()))
}

/// A connection of a pool while it works. One that failed, or whose call was given up, is not used again: its pending
/// answer could still come, or never.
pub(crate) struct Lease {
    connection: Option<PoolConnection<Any>>,
    /// The connection of a database in memory is the database.
    renewable: bool,
}

impl Lease {
    pub(crate) async fn acquire(pool: &AnyPool, engine: DbEngine) -> Result<Self, StoreError> {
        let connection = Some(pool.acquire().await?);
        Ok(Self { connection, renewable: engine != DbEngine::Memory })
    }

    /// Returns the connection, which is there until the end of the lease.
    pub(crate) fn connection(&mut self) -> Result<&mut AnyConnection, StoreError> {
        self.connection.as_deref_mut().ok_or(StoreError::Closed)
    }

    /// Gives the connection back, if it is of further use.
    pub(crate) fn end<T>(mut self, outcome: &Result<T, StoreError>) {
        if matches!(outcome, Err(error) if error.is_outage()) {
            return;
        }
        let Some(mut connection) = self.connection.take() else { return };
        if self.renewable {
            // The pool tests it first, and would wait for ever for a server that vanished meanwhile.
            tokio::spawn(tokio::time::timeout(CHECK_TIMEOUT, connection.return_to_pool()));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take().filter(|_| self.renewable) {
            // Closed without a farewell, for which a server that is gone would have to be waited for.
            drop(connection.detach());
        }
    }
}

/// Opens the database, brings it up to date, and makes the ways to it. The first connection is made without a pool, so
/// that an error is reported unchanged and at once: a pool would retry until its timeout, and then report only
/// that.
pub(crate) async fn connect(
    location: &DbLocation,
    availability: &Arc<Availability>,
) -> Result<DbConnections, StoreError> {
    sqlx::any::install_default_drivers();
    let (engine, url) = address(location)?;
    let options: AnyConnectOptions = url.parse()?;
    if engine == DbEngine::Memory {
        let pool = memory(options).await?;
        let (write, read) = (WriteLink::Pool(pool.clone(), engine), ReadLink::Pool(pool.clone()));
        return Ok(DbConnections { engine, write, read, pools: vec![pool] });
    }
    let mut first = first(engine, &options).await?;
    schema::migrate(&mut first, engine).await?;
    if let DbLocation::Sqlite(path) = location {
        let path = absolute(path)?;
        let read = ReadLink::File(FileReaders::new(path.clone()));
        let file = blocking::run(|| DbFile::open(path)).await;
        let write = WriteLink::File(file.map_err(|error| StoreError::Unavailable(error.to_string()))??);
        first.close().await?;
        return Ok(DbConnections { engine, write, read, pools: Vec::new() });
    }
    first.close().await?;
    let read = pool(engine.reading(), availability.clone());
    let read =
        read.max_connections(MAX_READERS).idle_timeout(IDLE_TIMEOUT).connect_lazy_with(options.clone());
    let write = pool(engine.writing(), availability.clone()).max_connections(1).idle_timeout(None);
    let write = write.connect_lazy_with(options);
    let pools = vec![write.clone(), read.clone()];
    let (write, read) = (WriteLink::Pool(write, engine), ReadLink::Pool(read));
    Ok(DbConnections { engine, write, read, pools })
}

/// A database in memory lives as long as its one connection, which all callers share.
async fn memory(options: AnyConnectOptions) -> Result<AnyPool, StoreError> {
    let only = AnyPoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
    let pool = only.test_before_acquire(false).acquire_timeout(ACQUIRE_TIMEOUT).connect_lazy_with(options);
    schema::migrate(&mut *pool.acquire().await?, DbEngine::Memory).await?;
    Ok(pool)
}

/// Opens a session of its own, outside of all pools.
pub(crate) async fn session(location: &DbLocation) -> Result<AnyConnection, StoreError> {
    let (engine, url) = address(location)?;
    open(&url.parse()?, engine.writing()).await
}

/// A file that another process is just opening can be busy in ways for which SQLite does not wait.
async fn first(engine: DbEngine, options: &AnyConnectOptions) -> Result<AnyConnection, StoreError> {
    let open = || open(options, engine.writing());
    let waits = ExponentialBuilder::default().with_min_delay(Duration::from_millis(20)).with_max_times(8);
    let busy = |error: &StoreError| engine == DbEngine::Sqlite && matches!(error, StoreError::Unavailable(_));
    open.retry(waits).when(busy).await
}

/// A pool of prepared connections to a server, which may have closed one meanwhile, or vanished.
fn pool(prepare: &'static str, availability: Arc<Availability>) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_lifetime(None)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            Box::pin(async move { sqlx::raw_sql(prepare).execute(connection).await.map(drop) })
        })
        .before_acquire(move |connection, meta| {
            let availability = availability.clone();
            Box::pin(async move {
                // An error closes it without a farewell, for which a server that is gone would have to be waited for.
                let lost = || sqlx::Error::Io(io::ErrorKind::ConnectionAborted.into());
                if availability.suspects(meta.age) {
                    return Err(lost());
                }
                if meta.idle_for < CHECK_INTERVAL {
                    return Ok(true);
                }
                match tokio::time::timeout(CHECK_TIMEOUT, connection.ping()).await {
                    Ok(Ok(())) => Ok(true),
                    Ok(Err(_)) | Err(_) => {
                        availability.lost_connection();
                        Err(lost())
                    }
                }
            })
        })
}

/// Returns the engine and the address as sqlx reads it.
fn address(location: &DbLocation) -> Result<(DbEngine, String), StoreError> {
    match location {
        DbLocation::Memory => Ok((DbEngine::Memory, "sqlite::memory:".to_owned())),
        DbLocation::Sqlite(path) => Ok((DbEngine::Sqlite, file(path)?)),
        DbLocation::Postgres(url) => Ok((DbEngine::Postgres, url.reveal().to_owned())),
    }
}

/// Makes the file, readable by its owner alone, and the folders above it.
fn file(path: &Path) -> Result<String, StoreError> {
    let path = absolute(path)?;
    let refused = |error| refused(&path, &error);
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    }
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(refused)?;
    let no_path = |()| StoreError::Refused(format!("{} cannot be a file", path.display()));
    let url = url::Url::from_file_path(&path).map_err(no_path)?;
    Ok(format!("sqlite://{}", url.path()))
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Refused(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readers_cannot_write() {
        let folder = tempfile::TempDir::new().unwrap();
        let location = DbLocation::Sqlite(folder.path().join("pudu.db"));
        let connections = connect(&location, &Arc::default()).await.unwrap();
        let ReadLink::File(readers) = connections.read else { panic!("a file has readers of its own") };
        let reader = readers.acquire().await.unwrap();
        let refused = reader.connection.execute("DELETE FROM inbox", []).unwrap_err();
        assert!(refused.to_string().contains("readonly"), "{refused}");
    }
}
