//! Connections that read a file. A caller reads with one in its own thread: the data is nearly always in the system's
//! cache, and handing a statement over to another thread takes longer than running it.

use crate::{StoreError, engine::DbEngine, file};
use rusqlite::Connection;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

/// How many reads run side by side.
pub(crate) const MAX_READERS: u32 = 4;
/// How long an unused reading connection is kept: its page cache is given back after it.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The connections of a file's readers.
#[derive(Clone)]
pub(crate) struct FileReaders(Arc<ReaderPool>);

struct ReaderPool {
    path: PathBuf,
    places: Semaphore,
    idle: Mutex<IdleReaders>,
}

#[derive(Default)]
struct IdleReaders {
    /// Idle connections; the last used one is last, and is used next.
    connections: Vec<(Instant, Connection)>,
    /// Whether a task closes unused connections.
    swept: bool,
}

impl FileReaders {
    pub(crate) fn new(path: PathBuf) -> Self {
        let places = Semaphore::new(MAX_READERS as usize);
        Self(Arc::new(ReaderPool { path, places, idle: Mutex::default() }))
    }

    /// Waits for a place, and opens a connection if none is left of earlier reads.
    pub(crate) async fn acquire(&self) -> Result<FileReader<'_>, StoreError> {
        let place = self.0.places.acquire().await.map_err(|_| StoreError::Closed)?;
        file::step("read")?;
        let idle = self.0.lock().connections.pop();
        let connection = match idle {
            Some((_, connection)) => connection,
            None => file::connect(&self.0.path, DbEngine::Sqlite.reading())?,
        };
        Ok(FileReader { connection, readers: self, _place: place })
    }

    /// Closes all that do not work just now; the others are closed when they are done.
    pub(crate) fn close(&self) {
        self.0.places.close();
        self.0.lock().connections.clear();
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.0.lock();
        if self.0.places.is_closed() {
            return;
        }
        idle.connections.push((Instant::now(), connection));
        if !std::mem::replace(&mut idle.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
        }
    }
}

impl ReaderPool {
    fn lock(&self) -> MutexGuard<'_, IdleReaders> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection while it reads. One whose call was given up is not used again: dropping it closes it.
pub(crate) struct FileReader<'r> {
    pub(crate) connection: Connection,
    readers: &'r FileReaders,
    _place: SemaphorePermit<'r>,
}

impl FileReader<'_> {
    /// Gives the connection back, if it is of further use.
    pub(crate) fn end<T>(self, outcome: &Result<T, StoreError>) {
        if !matches!(outcome, Err(error) if error.is_outage()) {
            self.readers.keep(self.connection);
        }
    }
}

/// Closes unused connections, until none is left.
async fn sweep(shared: Weak<ReaderPool>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT).await;
        let Some(shared) = shared.upgrade() else { return };
        let mut idle = shared.lock();
        idle.connections.retain(|(since, _)| since.elapsed() < IDLE_TIMEOUT);
        if idle.connections.is_empty() {
            idle.swept = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readers(folder: &std::path::Path) -> FileReaders {
        let path = folder.join("pudu.db");
        std::fs::File::create(&path).unwrap();
        FileReaders::new(path)
    }

    fn idle(readers: &FileReaders) -> usize {
        readers.0.lock().connections.len()
    }

    #[tokio::test]
    async fn connections_are_used_again_and_closed_when_nobody_reads() {
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
        readers.close();
        assert_eq!(idle(&readers), 0);
        assert!(matches!(readers.acquire().await, Err(StoreError::Closed)));
    }
}
