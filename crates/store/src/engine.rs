//! The two engines, and all that differs between them.

use crate::{Location, StoreError};
use backon::{ExponentialBuilder, Retryable};
use sqlx::{
    AnyConnection, AnyPool, ConnectOptions, Connection,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    time::Duration,
};

/// How long a caller waits for a connection, and a SQLite connection for another process's lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an unused reading connection is kept: its page cache is given back after it.
const IDLE: Duration = Duration::from_secs(60);
/// How many reads run side by side.
const READERS: u32 = 4;

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Memory,
    Sqlite,
    Postgres,
}

impl Engine {
    /// Begins a transaction that will write. SQLite takes the lock at once: a transaction that reads
    /// first and then wants to write could not wait for it.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            Self::Memory | Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// How long a transaction may take. A server can vanish without a word; a file's own waits end.
    pub(crate) fn patience(self) -> Option<Duration> {
        (self == Self::Postgres).then_some(3 * PATIENCE)
    }

    /// The type of a number that the database gives to a row and never gives again.
    pub(crate) fn item_id(self) -> &'static str {
        match self {
            Self::Memory | Self::Sqlite => "INTEGER PRIMARY KEY AUTOINCREMENT",
            Self::Postgres => "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        }
    }

    /// Prepares a connection that writes.
    fn writing(self) -> &'static str {
        match self {
            Self::Memory => "",
            Self::Sqlite => {
                "PRAGMA page_size = 8192; PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                 PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -1024;"
            }
            Self::Postgres => "SET client_min_messages = warning; SET search_path TO pudu;",
        }
    }

    /// Prepares a connection that reads.
    fn reading(self) -> &'static str {
        match self {
            Self::Memory => "",
            Self::Sqlite => "PRAGMA busy_timeout = 10000; PRAGMA query_only = ON; PRAGMA cache_size = -512;",
            Self::Postgres => "SET search_path TO pudu; SET default_transaction_read_only = on;",
        }
    }
}

/// The ways to the database.
pub(crate) struct Pools {
    pub(crate) write: AnyPool,
    pub(crate) read: AnyPool,
}

/// Opens the database, brings it up to date, and makes the pools.
pub(crate) async fn connect(location: &Location) -> Result<(Engine, Pools), StoreError> {
    sqlx::any::install_default_drivers();
    let (engine, url) = address(location)?;
    let options = url.parse()?;
    let pools = match engine {
        Engine::Memory => memory(options).await?,
        Engine::Sqlite | Engine::Postgres => lasting(engine, options).await?,
    };
    Ok((engine, pools))
}

/// A database in memory lives as long as its one connection, which everybody shares.
async fn memory(options: AnyConnectOptions) -> Result<Pools, StoreError> {
    let only = AnyPoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
    let pool = only.test_before_acquire(false).acquire_timeout(PATIENCE).connect_lazy_with(options);
    crate::schema::migrate(&mut *pool.acquire().await?, Engine::Memory).await?;
    Ok(Pools { write: pool.clone(), read: pool })
}

/// The first connection is made without a pool, so that what is wrong is told as it is and at once: a
/// pool would try again until it is out of patience, and then tell of that alone.
async fn lasting(engine: Engine, options: AnyConnectOptions) -> Result<Pools, StoreError> {
    let mut first = first(engine, &options).await?;
    crate::schema::migrate(&mut first, engine).await?;
    let write = pool(engine, engine.writing()).max_connections(1).idle_timeout(None);
    let read = pool(engine, engine.reading()).max_connections(READERS).idle_timeout(IDLE);
    let pools =
        Pools { write: write.connect_lazy_with(options.clone()), read: read.connect_lazy_with(options) };
    first.close().await?;
    Ok(pools)
}

/// A file that another process is just opening can be busy in ways for which SQLite does not wait.
async fn first(engine: Engine, options: &AnyConnectOptions) -> Result<AnyConnection, StoreError> {
    let open = || open(engine, options);
    let waits = ExponentialBuilder::default().with_min_delay(Duration::from_millis(20)).with_max_times(8);
    let busy = |error: &StoreError| engine == Engine::Sqlite && matches!(error, StoreError::Unavailable(_));
    open.retry(waits).when(busy).await
}

async fn open(engine: Engine, options: &AnyConnectOptions) -> Result<AnyConnection, StoreError> {
    let slow = |_| StoreError::Unavailable(format!("no answer within {} s", PATIENCE.as_secs()));
    let mut connection = tokio::time::timeout(PATIENCE, options.connect()).await.map_err(slow)??;
    sqlx::raw_sql(engine.writing()).execute(&mut connection).await?;
    Ok(connection)
}

/// A pool of prepared connections. A server may have closed one meanwhile, a file cannot.
fn pool(engine: Engine, prepare: &'static str) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .acquire_timeout(PATIENCE)
        .max_lifetime(None)
        .test_before_acquire(engine == Engine::Postgres)
        .after_connect(move |connection, _| {
            Box::pin(async move { sqlx::raw_sql(prepare).execute(connection).await.map(drop) })
        })
}

/// Returns the engine and the address as sqlx reads it.
fn address(location: &Location) -> Result<(Engine, String), StoreError> {
    match location {
        Location::Memory => Ok((Engine::Memory, "sqlite::memory:".to_owned())),
        Location::Sqlite(path) => Ok((Engine::Sqlite, file(path)?)),
        Location::Postgres(url) => Ok((Engine::Postgres, url.reveal().to_owned())),
    }
}

/// Makes the file, readable by its owner alone, and the folders above it.
fn file(path: &Path) -> Result<String, StoreError> {
    let refused = |error: io::Error| StoreError::Refused(format!("{}: {error}", path.display()));
    let path = std::path::absolute(path).map_err(refused)?;
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    }
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(refused)?;
    let no_path = |()| StoreError::Refused(format!("{} cannot be a file", path.display()));
    let url = url::Url::from_file_path(&path).map_err(no_path)?;
    Ok(format!("sqlite://{}", url.path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{AssertSqlSafe, Row, any::AnyRow};

    async fn pragma(pool: &AnyPool, name: &str) -> String {
        let sql = AssertSqlSafe(format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}"));
        let row: AnyRow = sqlx::query(sql).fetch_one(pool).await.unwrap();
        row.get(0)
    }

    #[tokio::test]
    async fn a_commit_is_on_disk_and_readers_cannot_write() {
        let folder = tempfile::TempDir::new().unwrap();
        let (_, pools) = connect(&Location::Sqlite(folder.path().join("pudu.db"))).await.unwrap();
        assert_eq!(pragma(&pools.write, "journal_mode").await, "wal");
        assert_eq!(pragma(&pools.write, "synchronous").await, "2", "FULL");
        assert_eq!(pragma(&pools.write, "foreign_keys").await, "1");
        let refused = sqlx::query("DELETE FROM inbox").execute(&pools.read).await.unwrap_err();
        assert!(refused.to_string().contains("readonly"), "{refused}");
    }
}
