//! The store itself: open it, hand it around, close it.
//!
//! The store handles its failures here for all callers: a call waits until the store has done its work. A
//! database that is busy, full, restarting or out of reach is tried again, and the log says when it went and when it
//! came back. Failures that waiting cannot fix (a conflict, damage, a refused statement) are errors at once.
//! A caller that cannot wait asks a copy of the store with a limit ([`Db::within`]).

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

/// Timeout of a check whether the store answers.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for waiting writes when the store is closed.
const WRITE_OUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for closing the connections when the store is closed.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// The store. Cloning it is cheap and gives the same store.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
    /// A call fails when it takes longer.
    limit: Option<Duration>,
}

struct Inner {
    location: DbLocation,
    writer: StoreWriter,
    availability: Arc<Availability>,
    read: ReadLink,
    /// The name of this opening of the store among all.
    process: String,
}

impl Db {
    /// Opens the store, makes or updates its tables, and starts its writer.
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

    /// Returns this store for callers that cannot wait: a call that takes longer than `limit` fails. A write that
    /// failed so may still be done later.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        Self { inner: self.inner.clone(), limit: Some(limit) }
    }

    /// Waits until the writer broke down: nothing is written any more.
    pub async fn until_broken(&self) {
        self.inner.writer.until_broken().await;
    }

    /// Takes no more writes, writes those that wait, and releases the database. A caller that waits for a store that
    /// does not answer gets an error. Dropping the store without this loses nothing that was answered.
    pub async fn close(&self) {
        self.inner.availability.close();
        // A server that vanished answers no farewell, and nothing that is still to be written was answered.
        tokio::time::timeout(WRITE_OUT_TIMEOUT, self.inner.writer.close()).await.ok();
        tokio::time::timeout(FAREWELL_TIMEOUT, self.inner.read.close()).await.ok();
    }

    /// Checks that the database answers and writes are taken.
    pub async fn ping(&self) -> Result<()> {
        if !self.inner.writer.is_open() {
            return Err(StoreError::Closed);
        }
        self.within(PING_TIMEOUT).one::<i64>(query("SELECT 1")).await.map(drop)
    }

    /// Returns how many transactions the writer has committed: fewer than there were writes, when many came
    /// at once.
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

    /// Runs one read of some rows, and again as long as the database fails.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.read_patiently(false, work).await
    }

    /// Likewise one that takes the longer the more is stored: other tasks of its thread go on meanwhile.
    pub(crate) async fn read_much<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.read_patiently(true, work).await
    }

    /// Reads all rows of a statement, as [`Self::read_much`].
    pub(crate) async fn all<R: FromRow + Send + 'static>(&self, statement: Statement<'_>) -> Result<Vec<R>> {
        let statement = statement.into_owned();
        self.read_much(move |tx| statement.fetch_all(tx)).await
    }

    /// Reads the row of a statement, if there is one, as [`Self::read`].
    pub(crate) async fn find<R: FromRow + Send + 'static>(
        &self,
        statement: Statement<'_>,
    ) -> Result<Option<R>> {
        let statement = statement.into_owned();
        self.read(move |tx| statement.fetch_optional(tx)).await
    }

    /// Returns whether a statement finds a row, as [`Self::read`].
    pub(crate) async fn finds(&self, statement: Statement<'_>) -> Result<bool> {
        Ok(self.find::<()>(statement).await?.is_some())
    }

    /// Reads the row of a statement that always has one, as [`Self::read`].
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

    /// Runs one write, and again as long as the database fails.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        name: &'static crash::Write,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        in_time(self.limit, &mut 0, self.inner.writer.write(name, work)).await
    }

    /// Writes by one statement, as [`Self::write`], and returns how many rows it changed.
    pub(crate) async fn execute(&self, name: &'static crash::Write, statement: Statement<'_>) -> Result<u64> {
        let statement = statement.into_owned();
        self.write(name, move |tx| statement.execute(tx)).await
    }

    /// Has one write done with the next one, or soon, and before all that come later. Its result is worth waiting for
    /// where something else takes as long.
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

    /// Likewise a write without a waiting caller.
    pub(crate) fn write_soon(
        &self,
        name: &'static crash::Write,
        work: impl Fn(&mut Tx<'_>) -> Result<()> + Send + 'static,
    ) {
        self.inner.writer.write_soon(name, work, None);
    }
}
