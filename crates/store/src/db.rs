//! The store itself: open it, hand it around, close it.
//!
//! The store handles its failures here for all callers: a call waits until the store has done its work. A
//! database that is busy, full, restarting or out of reach is tried again, and the log says when it went and when it
//! came back. Failures that waiting cannot fix (a conflict, damage, a refused statement) are errors at once.
//! A caller that cannot wait asks a copy of the store with a limit ([`Db::within`]).

use crate::{
    DbLocation, StoreError,
    availability::{Availability, RetryDelays},
    crash,
    engine::DbEngine,
    job::{SoonCall, WriteCall, WriteWork},
    link::ReadLink,
    pools::{self, DbConnections, Lease},
    statement::{FromColumns, Tx, query},
    writer::StoreWriter,
};
use futures_util::{FutureExt, future::join_all};
use pudu_base::BoxFuture;
use sqlx::AnyPool;
use std::{sync::Arc, time::Duration};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::oneshot,
};

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
    engine: DbEngine,
    location: DbLocation,
    writer: StoreWriter,
    availability: Arc<Availability>,
    read: ReadLink,
    pools: Vec<AnyPool>,
    /// The name of this opening of the store among all.
    process: String,
}

/// Function of a read: asks with its data.
pub(crate) type ReadWork<D, T> = for<'a> fn(&'a D, &'a mut Tx<'_>) -> BoxFuture<'a, Result<T, StoreError>>;

/// How long a read takes.
enum ReadLength {
    /// As long for a large store as for a small one.
    Short,
    /// The longer the more is stored.
    Long,
}

/// Returns whether other threads can take over the tasks of this one.
fn has_other_threads() -> bool {
    Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread
}

impl Db {
    /// Opens the store, makes or updates its tables, and starts its writer.
    pub async fn open(location: &DbLocation) -> Result<Self, StoreError> {
        let availability = Arc::new(Availability::default());
        let DbConnections { engine, write, read, pools } = pools::connect(location, &availability).await?;
        let writer = StoreWriter::start(write, engine.write_timeout(), availability.clone())?;
        let location = location.clone();
        let process = format!("{:016x}", fastrand::u64(..));
        let inner = Inner { engine, location, writer, availability, read, pools, process };
        Ok(Self { inner: Arc::new(inner), limit: None })
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
        let farewells = async {
            join_all(self.inner.pools.iter().map(AnyPool::close)).await;
            if let ReadLink::File(readers) = &self.inner.read {
                readers.close();
            }
        };
        tokio::time::timeout(FAREWELL_TIMEOUT, farewells).await.ok();
    }

    /// Checks that the database answers and writes are taken.
    pub async fn ping(&self) -> Result<(), StoreError> {
        if !self.inner.writer.is_open() {
            return Err(StoreError::Closed);
        }
        let call = self.within(PING_TIMEOUT);
        call.read((), |(), tx| Box::pin(async { query("SELECT 1").fetch_one::<i64>(tx).await.map(drop) }))
            .await
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

    pub(crate) fn engine(&self) -> DbEngine {
        self.inner.engine
    }

    pub(crate) fn process(&self) -> &str {
        &self.inner.process
    }

    pub(crate) fn location(&self) -> &DbLocation {
        &self.inner.location
    }

    /// Runs one read of some rows, and again as long as the database fails.
    pub(crate) async fn read<D: Sync, T>(&self, data: D, work: ReadWork<D, T>) -> Result<T, StoreError> {
        self.retry_read((data, ReadLength::Short), work).await
    }

    /// Likewise one that takes the longer the more is stored: other tasks of its thread go on meanwhile.
    pub(crate) async fn read_much<D: Sync, T>(&self, data: D, work: ReadWork<D, T>) -> Result<T, StoreError> {
        self.retry_read((data, ReadLength::Long), work).await
    }

    /// Reads all rows of a statement without values.
    pub(crate) async fn rows<R: FromColumns + Send + 'static>(
        &self,
        sql: &'static str,
    ) -> Result<Vec<R>, StoreError> {
        self.read_much(sql, |sql, tx| Box::pin(query(*sql).fetch_all(tx))).await
    }

    async fn retry_read<D: Sync, T>(
        &self,
        data: (D, ReadLength),
        work: ReadWork<D, T>,
    ) -> Result<T, StoreError> {
        let patient = async {
            let (mut pauses, mut late) = (RetryDelays::default(), 0);
            loop {
                let outcome = self.read_once(&data, work, &mut late).await;
                match outcome {
                    Err(error) if error.is_outage() => self.inner.availability.failed(&error),
                    outcome => {
                        self.inner.availability.answered();
                        return outcome;
                    }
                }
                if self.inner.availability.sleep(pauses.next()).await.is_none() {
                    return Err(StoreError::Closed);
                }
            }
        };
        self.bounded(patient).await
    }

    /// After each try that was late the next has twice the time: a read that is only long ends in the end.
    async fn read_once<D: Sync, T>(
        &self,
        (data, length): &(D, ReadLength),
        work: ReadWork<D, T>,
        late: &mut u32,
    ) -> Result<T, StoreError> {
        let pool = match &self.inner.read {
            ReadLink::Pool(pool) => pool,
            ReadLink::File(readers) => {
                let mut reader = readers.acquire().await?;
                let answered = match length {
                    ReadLength::Long if has_other_threads() => {
                        let work = || work(data, &mut Tx::File(&mut reader.connection)).now_or_never();
                        let pending =
                            || Err(StoreError::Rejected("a file's statement was pending".to_owned()));
                        tokio::task::block_in_place(work).unwrap_or_else(pending)
                    }
                    _ => work(data, &mut Tx::File(&mut reader.connection)).await,
                };
                reader.end(&answered);
                return answered;
            }
        };
        let mut lease = Lease::acquire(pool, self.inner.engine).await?;
        let answer = async { work(data, &mut Tx::Pooled(lease.connection()?)).await };
        let answered = pools::in_time(self.inner.engine.read_timeout(), late, answer).await;
        lease.end(&answered);
        answered
    }

    /// Runs one write, and again as long as the database fails.
    pub(crate) async fn write<D, T>(
        &self,
        name: &'static crash::Write,
        data: D,
        work: WriteWork<D, T>,
    ) -> Result<T, StoreError>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.bounded(self.inner.writer.write(name, data, work)).await
    }

    /// Has one write done with the next one, or soon, and before all that come later. Its result is worth waiting for
    /// where something else takes as long.
    pub(crate) fn write_with_next<D, T>(
        &self,
        name: &'static crash::Write,
        data: D,
        work: WriteWork<D, T>,
    ) -> impl Future<Output = Result<T, StoreError>> + use<D, T>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.inner.writer.write_soon(Box::new(WriteCall::new(name, data, work, reply)));
        async { answer.await.map_err(|_| StoreError::Closed)? }
    }

    /// Likewise a write without a waiting caller.
    pub(crate) fn write_soon<D>(&self, name: &'static crash::Write, data: D, work: WriteWork<D, ()>)
    where
        D: Send + Sync + 'static,
    {
        self.inner.writer.write_soon(Box::new(SoonCall { name, data, work }));
    }

    async fn bounded<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        pools::in_time(self.limit, &mut 0, call).await
    }
}
