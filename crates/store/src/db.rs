//! Store handle: opens, reads, writes and closes the database.
//!
//! Failures of the database are handled here for all callers: a call waits until it succeeds. It is retried while the
//! database is busy, full, restarting or unreachable, and the log records the start and end of the outage. Failures
//! that a retry cannot fix (a conflict, damage, a rejected statement) are returned at once. A caller that cannot wait
//! uses a copy of the store with a time limit ([`Db::within`]).

use crate::{
    DbLocation, Result, StoreError,
    availability::{Availability, RetryDelays, in_time},
    crash,
    engines::{self, FromRow, ReadLink, Statement, Tx, query},
    writer::{StoreWriter, WriterPlace},
};
use pudu_kit::simulation::Simulation;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// Time limit for the check that the store answers.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for pending writes when the store is closed.
const WRITE_OUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for closing the connections when the store is closed.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// A handle of the store. Clones are cheap and share the store.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
    /// Time limit of each call.
    limit: Option<Duration>,
}

struct Inner {
    location: DbLocation,
    writer: StoreWriter,
    availability: Arc<Availability>,
    read: ReadLink,
    /// Unique random name of this open store. It identifies the process in rows.
    process: String,
}

impl Db {
    /// Opens the store, creates or migrates its tables, and starts its writer.
    pub async fn open(location: &DbLocation) -> Result<Self> {
        let availability = Arc::new(Availability::default());
        let (write, read) = engines::connect(location, &availability).await?;
        let has_thread = write.blocks() && Simulation::current().is_none();
        let place = if has_thread { WriterPlace::Thread } else { WriterPlace::Runtime };
        let writer = StoreWriter::start(write, place, availability.clone())?;
        let location = location.clone();
        let process = format!("{:016x}", fastrand::u64(..));
        Ok(Self { inner: Arc::new(Inner { location, writer, availability, read, process }), limit: None })
    }

    /// Returns a handle for callers that cannot wait: calls that take longer than `limit` fail. A write that failed for
    /// this reason may still be committed later.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        Self { inner: self.inner.clone(), limit: Some(limit) }
    }

    /// Waits until the writer has panicked. No write is possible after that.
    pub async fn until_broken(&self) {
        self.inner.writer.until_broken().await;
    }

    /// Refuses new writes, commits pending ones, and releases the database. Callers waiting for an unavailable database
    /// get an error. Dropping the store without this call does not lose acknowledged writes.
    pub async fn close(&self) {
        self.inner.availability.close();
        // An unreachable server does not answer. Pending writes are not acknowledged yet, so they may be lost.
        tokio::time::timeout(WRITE_OUT_TIMEOUT, self.inner.writer.close()).await.ok();
        tokio::time::timeout(FAREWELL_TIMEOUT, self.inner.read.close()).await.ok();
    }

    /// Checks that the database answers and the writer accepts writes.
    pub async fn ping(&self) -> Result<()> {
        if !self.inner.writer.is_open() {
            return Err(StoreError::Closed);
        }
        self.within(PING_TIMEOUT).one::<i64>(query("SELECT 1")).await.map(drop)
    }

    /// Returns the number of transactions that the writer has committed. Concurrent writes share transactions.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.inner.writer.commits()
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.inner.writer.is_claimed()
    }

    pub(crate) fn claimed_as(&self, owner: &str) {
        self.inner.writer.claimed_as(owner.to_owned());
    }

    pub(crate) fn process(&self) -> &str {
        &self.inner.process
    }

    pub(crate) fn location(&self) -> &DbLocation {
        &self.inner.location
    }

    /// Runs one short read, and retries it while the database is unavailable.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.read_patiently(false, work).await
    }

    /// Like [`Self::read`], for a read whose duration grows with the stored data. It does not block the thread's other
    /// tasks.
    pub(crate) async fn read_much<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.read_patiently(true, work).await
    }

    /// Reads all rows of a statement with [`Self::read_much`].
    pub(crate) async fn all<R: FromRow + Send + 'static>(&self, statement: Statement<'_>) -> Result<Vec<R>> {
        let statement = statement.into_owned();
        self.read_much(move |tx| statement.fetch_all(tx)).await
    }

    /// Reads the row of a statement, if there is one, with [`Self::read`].
    pub(crate) async fn find<R: FromRow + Send + 'static>(
        &self,
        statement: Statement<'_>,
    ) -> Result<Option<R>> {
        let statement = statement.into_owned();
        self.read(move |tx| statement.fetch_optional(tx)).await
    }

    /// Returns whether a statement finds a row, with [`Self::read`].
    pub(crate) async fn finds(&self, statement: Statement<'_>) -> Result<bool> {
        Ok(self.find::<()>(statement).await?.is_some())
    }

    /// Reads the row of a statement that always returns one, with [`Self::read`].
    pub(crate) async fn one<R: FromRow + Send + 'static>(&self, statement: Statement<'_>) -> Result<R> {
        let statement = statement.into_owned();
        self.read(move |tx| statement.fetch_one(tx)).await
    }

    async fn read_patiently<T: Send + 'static>(
        &self,
        is_long: bool,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (work, availability) = (Arc::new(work), &self.inner.availability);
        let patient = async {
            let (mut pauses, mut late) = (RetryDelays::default(), 0);
            loop {
                match self.inner.read.run(is_long, &mut late, &work).await {
                    Err(error) if error.is_outage() => availability.failed(&error),
                    outcome => {
                        availability.answered();
                        return outcome;
                    }
                }
                if availability.sleep(pauses.next()).await.is_none() {
                    return Err(StoreError::Closed);
                }
            }
        };
        in_time(self.limit, &mut 0, patient).await
    }

    /// Runs one write, and retries it while the database is unavailable.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        name: &'static crash::Write,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        in_time(self.limit, &mut 0, self.inner.writer.write(name, work)).await
    }

    /// Runs one writing statement with [`Self::write`], and returns the number of changed rows.
    pub(crate) async fn execute(&self, name: &'static crash::Write, statement: Statement<'_>) -> Result<u64> {
        let statement = statement.into_owned();
        self.write(name, move |tx| statement.execute(tx)).await
    }

    /// Queues a write that is committed with the next one or after a short delay, and before all later writes. Callers
    /// should wait for its result only while they are waiting for something else anyway.
    pub(crate) fn write_with_next<T: Send + 'static, F>(
        &self,
        name: &'static crash::Write,
        work: F,
    ) -> impl Future<Output = Result<T>> + use<T, F>
    where
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.inner.writer.write_soon(name, work, Some(reply));
        async { answer.await.map_err(|_| StoreError::Closed)? }
    }

    /// Like [`Self::write_with_next`], without a result.
    pub(crate) fn write_soon(
        &self,
        name: &'static crash::Write,
        work: impl Fn(&mut Tx<'_>) -> Result<()> + Send + 'static,
    ) {
        self.inner.writer.write_soon(name, work, None);
    }
}
