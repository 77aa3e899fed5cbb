//! The store itself: open it, hand it around, close it.

use crate::{
    Location, StoreError, crash,
    engine::{self, Engine},
    writer::{Work, Writer},
};
use sqlx::{AnyConnection, AnyPool};
use std::{sync::Arc, time::Duration};

/// The number under which PostgreSQL knows the claim; any would do, if nobody else uses it.
const CLAIM: i64 = 0x7075_6475;
/// A process that was killed a moment ago may still seem to be there for so long.
const LINGERS: Duration = Duration::from_secs(10);

/// A database that is one process's alone as long as this lives.
pub struct Claim {
    _connection: Option<AnyConnection>,
}

/// The store. Cloning it is cheap and gives the same store.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    writer: Writer,
    write: AnyPool,
    read: AnyPool,
}

impl Db {
    /// Opens the store, makes or updates its tables, and starts its writer.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let (engine, pools) = engine::connect(location).await?;
        let writer = Writer::start(pools.write.clone(), engine);
        Ok(Self { inner: Arc::new(Inner { engine, writer, write: pools.write, read: pools.read }) })
    }

    /// Takes the database for this process: another process that asks gets a `Conflict` until this one is
    /// gone. A file is locked with the folder that it lies in, so only a server is asked.
    pub async fn claim(&self) -> Result<Claim, StoreError> {
        if self.inner.engine != Engine::Postgres {
            return Ok(Claim { _connection: None });
        }
        let mut connection = self.reads().acquire().await?;
        for _ in 0..LINGERS.as_secs() * 10 {
            let sql = "SELECT CASE WHEN pg_try_advisory_lock($1) THEN 1 ELSE 0 END";
            let taken: i32 = sqlx::query_scalar(sql).bind(CLAIM).fetch_one(&mut *connection).await?;
            if taken == 1 {
                // Out of the pool, which would wait for it when it closes.
                return Ok(Claim { _connection: Some(connection.detach()) });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(StoreError::Conflict("another pudu works on this database"))
    }

    /// Takes no more writes, writes those that wait, and lets go of the database. Dropping the store
    /// without this loses nothing that was answered.
    pub async fn close(&self) {
        self.inner.writer.close().await;
        self.inner.write.close().await;
        self.inner.read.close().await;
    }

    /// Tells whether the database answers and writes are taken.
    pub async fn ping(&self) -> Result<(), StoreError> {
        if !self.inner.writer.is_open() {
            return Err(StoreError::Unavailable("it was closed".to_owned()));
        }
        sqlx::query("SELECT 1").execute(self.reads()).await?;
        Ok(())
    }

    /// Tells how many transactions the writer has committed: fewer than there were writes, when many
    /// came at once.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.inner.writer.commits()
    }

    pub(crate) fn reads(&self) -> &AnyPool {
        &self.inner.read
    }

    pub(crate) async fn write<D, T>(
        &self,
        name: &'static crash::Write,
        data: D,
        work: Work<D, T>,
    ) -> Result<T, StoreError>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.inner.writer.write(name, data, work).await
    }
}
