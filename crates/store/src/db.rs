//! The store itself: open it, hand it around, close it.

use crate::{
    Location, StoreError, crash, engine,
    writer::{Work, Writer},
};
use sqlx::AnyPool;
use std::sync::Arc;

/// The store. Cloning it is cheap and gives the same store.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    writer: Writer,
    write: AnyPool,
    read: AnyPool,
}

impl Db {
    /// Opens the store, makes or updates its tables, and starts its writer.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let (engine, pools) = engine::connect(location).await?;
        let writer = Writer::start(pools.write.clone(), engine);
        Ok(Self { inner: Arc::new(Inner { writer, write: pools.write, read: pools.read }) })
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
