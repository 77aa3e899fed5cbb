//! A pool of reading connections. Idle connections are kept for a while.

use crate::{Result, StoreError};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// Maximum number of concurrent reads.
const MAX_READERS: usize = 4;
/// How long a connection may be idle before it is closed, which frees its page cache.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Opens and closes reading connections.
pub(crate) trait Connect: Send + Sync + 'static {
    type Connection: Send + 'static;

    /// Returns the connection of an earlier read if it can be used again, or a new one.
    fn connect(
        &self,
        earlier: Option<Self::Connection>,
    ) -> impl Future<Output = Result<Self::Connection>> + Send;

    fn close(connection: Self::Connection) -> impl Future<Output = ()> + Send;
}

/// The pool of reading connections.
pub(crate) struct Readers<C: Connect>(Arc<ReaderPool<C>>);

struct ReaderPool<C: Connect> {
    database: C,
    places: Arc<Semaphore>,
    idle: Mutex<IdleReaders<C::Connection>>,
}

struct IdleReaders<C> {
    /// Idle connections. The most recently used one is last and is reused first.
    connections: Vec<(Instant, C)>,
    /// Whether a task that closes idle connections is running.
    is_swept: bool,
}

impl<C: Connect> Readers<C> {
    pub(crate) fn new(database: C) -> Self {
        let idle = Mutex::new(IdleReaders { connections: Vec::new(), is_swept: false });
        Self(Arc::new(ReaderPool { database, places: Arc::new(Semaphore::new(MAX_READERS)), idle }))
    }

    /// Waits for a free place, and returns an idle connection or opens a new one.
    pub(crate) async fn acquire(&self) -> Result<ReadLease<C>> {
        let permit = Arc::clone(&self.0.places).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let earlier = self.0.lock().connections.pop().map(|(_, connection)| connection);
        let connection = self.0.database.connect(earlier).await?;
        Ok(ReadLease { connection, pool: Arc::clone(&self.0), _place: permit })
    }

    /// Closes the idle connections. Connections in use are closed when their reads end.
    pub(crate) async fn close(&self) {
        self.0.places.close();
        let idle = std::mem::take(&mut self.0.lock().connections);
        for (_, connection) in idle {
            C::close(connection).await;
        }
    }
}

impl<C: Connect> ReaderPool<C> {
    fn lock(&self) -> MutexGuard<'_, IdleReaders<C::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(self: &Arc<Self>, connection: C::Connection) {
        let mut idle = self.lock();
        if self.places.is_closed() {
            return;
        }
        idle.connections.push((Instant::now(), connection));
        if !std::mem::replace(&mut idle.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }
}

/// A connection in use. If its call is cancelled, it is dropped and thereby closed, not reused.
pub(crate) struct ReadLease<C: Connect> {
    pub(crate) connection: C::Connection,
    pool: Arc<ReaderPool<C>>,
    _place: OwnedSemaphorePermit,
}

impl<C: Connect> ReadLease<C> {
    /// Returns the connection to the pool if it can be reused.
    pub(crate) fn end<T>(self, outcome: &Result<T>) {
        if !matches!(outcome, Err(error) if error.is_outage()) {
            self.pool.keep(self.connection);
        }
    }
}

/// Periodically closes idle connections, until none are left.
async fn sweep<C: Connect>(shared: Weak<ReaderPool<C>>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT).await;
        let Some(shared) = shared.upgrade() else { return };
        let (unused, is_last) = {
            let mut idle = shared.lock();
            let is_unused = |(since, _): &mut (Instant, _)| since.elapsed() >= IDLE_TIMEOUT;
            let unused: Vec<_> = idle.connections.extract_if(.., is_unused).collect();
            idle.is_swept = !idle.connections.is_empty();
            (unused, idle.connections.is_empty())
        };
        for (_, connection) in unused {
            C::close(connection).await;
        }
        if is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::sqlite::DbFile;

    fn readers(folder: &std::path::Path) -> Readers<DbFile> {
        let path = folder.join("pudu.db");
        std::fs::File::create(&path).unwrap();
        Readers::new(DbFile(path))
    }

    fn idle(readers: &Readers<DbFile>) -> usize {
        readers.0.lock().connections.len()
    }

    #[tokio::test]
    async fn connections_are_reused_and_closed_when_idle() {
        let folder = tempfile::TempDir::new().unwrap();
        let readers = readers(folder.path());
        for _ in 0..3 {
            let reader = readers.acquire().await.unwrap();
            reader.connection.execute_batch("SELECT 1").unwrap();
            reader.end(&Ok(()));
            assert_eq!(idle(&readers), 1);
        }
        let (one, two) = (readers.acquire().await.unwrap(), readers.acquire().await.unwrap());
        assert_eq!(idle(&readers), 0);
        drop(one);
        two.end(&Err::<(), _>(StoreError::Unavailable("gone".to_owned())));
        assert_eq!(idle(&readers), 0);
        readers.acquire().await.unwrap().end(&Ok(()));
        tokio::time::pause();
        tokio::time::sleep(IDLE_TIMEOUT * 3).await;
        tokio::time::resume();
        assert_eq!(idle(&readers), 0);
        readers.acquire().await.unwrap().end(&Ok(()));
        readers.close().await;
        assert_eq!(idle(&readers), 0);
        assert!(matches!(readers.acquire().await, Err(StoreError::Closed)));
    }
}
