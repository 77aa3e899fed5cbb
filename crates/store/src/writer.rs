//! The one writer, with group commit.
//!
//! Callers put a job into a bounded queue and wait. One task takes what has gathered, runs it in one transaction and
//! commits once, so that many callers share one fsync; nobody waits for a timer. A job that fails is not allowed to
//! harm its neighbours: the transaction is rolled back, the job is put aside to run alone, and the others run again
//! without it. A database that fails is waited for, with all jobs. So a job may run more than once, and only its last
//! run counts.

use crate::{
    StoreError,
    availability::{Availability, RetryDelays},
    crash,
    engine::{self, DbEngine, Lease},
    transaction::Transaction,
};
use pudu_base::BoxFuture;
use sqlx::{AnyConnection, AnyPool, Connection};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many jobs may wait; the next caller waits for a place.
const MAX_QUEUED_JOBS: usize = 1024;
/// How many jobs share a transaction at most.
const MAX_BATCH_JOBS: usize = 256;
/// A job that fails so often, as a database would, while the database takes writes, has failed.
const MAX_LONE_FAILURES: u32 = 5;

/// Function of a job: works with its data, inside a transaction. It must leave no trace when it fails.
pub(crate) type WriteWork<D, T> =
    for<'a> fn(&'a D, &'a mut AnyConnection) -> BoxFuture<'a, Result<T, StoreError>>;

/// The way to the writer's task.
pub(crate) struct StoreWriter {
    jobs: mpsc::Sender<Box<dyn WriteJob>>,
    commits: Arc<AtomicU64>,
    /// The name under which this process has claimed the database.
    owner: Arc<OnceLock<String>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl StoreWriter {
    /// Starts the task. It ends when it is closed or when nobody can reach it any more.
    pub(crate) fn start(pool: AnyPool, engine: DbEngine, availability: Arc<Availability>) -> Self {
        let owner = Arc::<OnceLock<String>>::default();
        let (jobs, queue) = mpsc::channel(MAX_QUEUED_JOBS);
        let (commits, stop, tasks) = (Arc::default(), CancellationToken::new(), TaskTracker::new());
        let task =
            WriterTask { pool, engine, availability, owner: owner.clone(), commits: Arc::clone(&commits) };
        tasks.spawn(task.run(queue, stop.clone()));
        tasks.close();
        Self { jobs, commits, owner, stop, tasks }
    }

    /// Runs one write and answers once it is durable. A caller that goes away does not cancel it.
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
        let (reply, answer) = oneshot::channel();
        let job = Box::new(WriteCall { name, data, work, value: None, reply });
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Returns how many transactions were committed.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Returns whether this process has claimed the database.
    pub(crate) fn is_claimed(&self) -> bool {
        self.owner.get().is_some()
    }

    /// From now on nothing is written once another process than this has claimed the database.
    pub(crate) fn claimed_as(&self, owner: String) {
        self.owner.set(owner).ok();
    }

    /// Returns whether writes are still taken.
    pub(crate) fn is_open(&self) -> bool {
        !self.jobs.is_closed()
    }

    /// Takes no more, writes what waits, and returns when that is done.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

/// A write that waits, whatever its types.
trait WriteJob: Send {
    fn name(&self) -> &'static crash::Write;

    /// Runs the work and keeps what it gave.
    fn run<'a>(&'a mut self, tx: &'a mut AnyConnection) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Sends the caller the result, or why it does not count.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

struct WriteCall<D, T> {
    name: &'static crash::Write,
    data: D,
    work: WriteWork<D, T>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<D: Send + Sync, T: Send> WriteJob for WriteCall<D, T> {
    fn name(&self) -> &'static crash::Write {
        self.name
    }

    fn run<'a>(&'a mut self, tx: &'a mut AnyConnection) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.value = None;
            self.value = Some((self.work)(&self.data, tx).await?);
            Ok(())
        })
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let answer = match (failure, self.value) {
            (None, Some(value)) => Ok(value),
            (Some(error), _) => Err(error),
            (None, None) => Err(StoreError::Closed),
        };
        // The caller may have gone; what was written stays written.
        drop(self.reply.send(answer));
    }
}

/// Why a batch was not committed.
enum CommitError {
    /// The job at this place failed.
    Job(usize, StoreError),
    /// The database did: no job is to blame.
    Database(StoreError),
}

struct WriterTask {
    pool: AnyPool,
    engine: DbEngine,
    availability: Arc<Availability>,
    owner: Arc<OnceLock<String>>,
    commits: Arc<AtomicU64>,
}

impl WriterTask {
    async fn run(self, mut queue: mpsc::Receiver<Box<dyn WriteJob>>, stop: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                () = stop.cancelled(), if !queue.is_closed() => queue.close(),
                taken = queue.recv_many(&mut batch, MAX_BATCH_JOBS) => match taken {
                    0 => return,
                    _ => self.settle(std::mem::take(&mut batch)).await,
                },
            }
        }
    }

    /// Writes a batch and answers everybody in it.
    async fn settle(&self, mut batch: Vec<Box<dyn WriteJob>>) {
        let (mut aside, mut tries) = (Vec::new(), CommitTries::default());
        let outcome = loop {
            match self.persist(&mut batch, &mut tries).await {
                Err(CommitError::Job(place, _)) if batch.len() > 1 => aside.push(batch.remove(place)),
                outcome => break outcome,
            }
        };
        answer(batch, outcome);
        for job in aside {
            let mut alone = vec![job];
            let outcome = self.persist(&mut alone, &mut CommitTries::default()).await;
            answer(alone, outcome);
        }
    }

    /// Commits jobs, however long the database has to be waited for. An error is that of a job, or the end of the
    /// store.
    async fn persist(
        &self,
        jobs: &mut [Box<dyn WriteJob>],
        tries: &mut CommitTries,
    ) -> Result<(), CommitError> {
        let (mut pauses, mut lone_failures) = (RetryDelays::default(), 0);
        loop {
            let error = match self.commit(jobs, tries).await {
                Ok(()) => {
                    tries.last = None;
                    self.availability.answered();
                    return Ok(());
                }
                // Is it the job, or the database? The others will show.
                Err(CommitError::Job(place, error)) if jobs.len() > 1 || !error.is_outage() => {
                    return Err(CommitError::Job(place, error));
                }
                Err(CommitError::Job(place, error)) => {
                    lone_failures = if self.answers().await { lone_failures + 1 } else { 0 };
                    if lone_failures == MAX_LONE_FAILURES {
                        return Err(CommitError::Job(place, error));
                    }
                    error
                }
                Err(CommitError::Database(error)) if !error.is_outage() => {
                    return Err(CommitError::Database(error));
                }
                Err(CommitError::Database(error)) => error,
            };
            self.availability.failed(&error);
            if self.availability.sleep(pauses.next()).await.is_none() {
                return Err(CommitError::Database(StoreError::Closed));
            }
        }
    }

    /// Returns whether the database takes a write: one that is full or a standby answers, too.
    async fn answers(&self) -> bool {
        let probe = async {
            let mut lease = Lease::take(&self.pool, self.engine).await?;
            let probe = probe(lease.connection()?);
            let probed = engine::in_time(self.engine.write_timeout(), &mut 0, probe).await;
            lease.end(&probed);
            probed
        };
        probe.await.is_ok()
    }

    /// Runs jobs in one transaction, and does not wait for ever: after each try that was late the next has twice the
    /// time. A transaction before it whose end is unknown is looked for first.
    async fn commit(
        &self,
        jobs: &mut [Box<dyn WriteJob>],
        tries: &mut CommitTries,
    ) -> Result<(), CommitError> {
        let mut lease = Lease::take(&self.pool, self.engine).await?;
        let run = self.run_once(lease.connection()?, jobs, &mut tries.last);
        let outcome = engine::in_time(self.engine.write_timeout(), &mut tries.late, run).await;
        lease.end(&outcome.as_ref().map_err(CommitError::error));
        outcome
    }

    async fn run_once(
        &self,
        connection: &mut AnyConnection,
        jobs: &mut [Box<dyn WriteJob>],
        last: &mut Option<Transaction>,
    ) -> Result<(), CommitError> {
        if let Some(before) = last {
            match before.was_committed(connection).await {
                Ok(true) => return Ok(()),
                Err(error) if error.is_outage() => return Err(error.into()),
                // A server that does not know it, after a restore or a failover, has not got it.
                Ok(false) | Err(_) => {}
            }
        }
        *last = None;
        self.run_all(connection, jobs, last).await
    }

    /// All of the jobs count, or none.
    async fn run_all(
        &self,
        connection: &mut AnyConnection,
        jobs: &mut [Box<dyn WriteJob>],
        begun: &mut Option<Transaction>,
    ) -> Result<(), CommitError> {
        let mut tx = connection.begin_with(self.engine.begin()).await?;
        if self.engine == DbEngine::Postgres {
            let (transaction, owner) = Transaction::of(&mut tx).await?;
            *begun = Some(transaction);
            if self.owner.get().is_some_and(|own| owner.as_ref() != Some(own)) {
                // For this process the store is closed from here on.
                self.availability.close();
                return Err(CommitError::Database(StoreError::Closed));
            }
        }
        for (place, job) in jobs.iter_mut().enumerate() {
            if let Err(error) = job.run(&mut tx).await {
                if let Err(left) = tx.rollback().await {
                    // SQLite ends a transaction by itself when the disk is full: the connection is not used again.
                    let lost = StoreError::Unavailable(left.to_string());
                    return Err(CommitError::Database(if error.is_outage() { error } else { lost }));
                }
                *begun = None;
                return Err(CommitError::Job(place, error));
            }
        }
        jobs.iter().for_each(|job| crash::point(job.name().before));
        tx.commit().await?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        jobs.iter().for_each(|job| crash::point(job.name().after));
        Ok(())
    }
}

/// How the tries of a batch went.
#[derive(Default)]
struct CommitTries {
    /// How many had no answer in time.
    late: u32,
    /// The transaction whose end is unknown.
    last: Option<Transaction>,
}

/// Writes something.
async fn probe(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let sql = "INSERT INTO owner (id, name) VALUES (2, 'probe')
        ON CONFLICT (id) DO UPDATE SET name = excluded.name";
    sqlx::query(sql).execute(connection).await?;
    Ok(())
}

impl CommitError {
    fn error(&self) -> StoreError {
        match self {
            Self::Job(_, error) | Self::Database(error) => error.clone(),
        }
    }
}

impl<E: Into<StoreError>> From<E> for CommitError {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

fn answer(batch: Vec<Box<dyn WriteJob>>, outcome: Result<(), CommitError>) {
    let failure = outcome.err().map(|trouble| trouble.error());
    batch.into_iter().for_each(|job| job.answer(failure.clone()));
}
