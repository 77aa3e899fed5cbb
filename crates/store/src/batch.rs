//! Commits jobs of the writer, many in one transaction.
//!
//! A job that fails is not allowed to harm its neighbours: the transaction is rolled back, the job is put aside to run
//! alone, and the others run again without it. A database that fails is waited for, with all jobs. So a job may run more
//! than once, and only its last run counts. A transaction that is late is tried again with half of the jobs, so that
//! work that is only too much at once gets done.

use crate::{
    StoreError,
    availability::{Availability, RetryDelays},
    crash,
    engine::DbEngine,
    file::DbFile,
    job::WriteJob,
    link::WriteLink,
    pools::{self, Lease},
    statement::{Tx, query},
    transaction::Transaction,
};
use sqlx::{AnyConnection, AnyPool, Connection};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// How many jobs share a transaction at most.
pub(crate) const MAX_BATCH_JOBS: usize = 256;
/// Maximum number of failures of a job that fails like a database while the database takes writes; after that, the job
/// has failed.
const MAX_LONE_FAILURES: u32 = 5;
/// A transaction that takes this share of its time at most shows that the next one may be twice as large.
const GROWTH_SHARE: u32 = 4;

/// Facts about the writer that others see or set.
#[derive(Default)]
pub(crate) struct WriterState {
    /// How many transactions were committed.
    pub(crate) commits: AtomicU64,
    /// The name under which this process has claimed the database.
    pub(crate) owner: OnceLock<String>,
}

pub(crate) struct BatchWriter {
    link: WriteLink,
    availability: Arc<Availability>,
    state: Arc<WriterState>,
    /// How long a transaction may take at the first try.
    timeout: Option<Duration>,
    /// How many jobs the next transaction has at most.
    size: usize,
}

/// Why a batch was not committed.
enum CommitError {
    /// The job at this place failed.
    Job(usize, StoreError),
    /// The database did: no job is to blame.
    Database(StoreError),
}

/// How the tries of a batch went.
#[derive(Default)]
struct CommitTries {
    /// How many of a single job had no answer in time.
    late: u32,
    /// The transaction whose end is unknown, and how many jobs it had.
    last: Option<(Transaction, usize)>,
}

type Jobs = [Box<dyn WriteJob>];

impl BatchWriter {
    pub(crate) fn new(
        link: WriteLink,
        timeout: Option<Duration>,
        availability: Arc<Availability>,
        state: Arc<WriterState>,
    ) -> Self {
        Self { link, availability, state, timeout, size: MAX_BATCH_JOBS }
    }

    pub(crate) fn availability(&self) -> Arc<Availability> {
        Arc::clone(&self.availability)
    }

    /// Writes a batch and answers all its callers.
    pub(crate) async fn settle(&mut self, mut batch: Vec<Box<dyn WriteJob>>) {
        let (mut aside, mut tries) = (Vec::new(), CommitTries::default());
        while !batch.is_empty() {
            match self.persist(&mut batch, &mut tries).await {
                Ok(count) => answer(batch.drain(..count), None),
                Err(CommitError::Job(place, _)) if batch.len() > 1 => aside.push(batch.remove(place)),
                Err(error) => answer(batch.drain(..), Some(&error.error())),
            }
        }
        for job in aside {
            let mut alone = [job];
            let outcome = self.persist(&mut alone, &mut CommitTries::default()).await;
            answer(alone, outcome.err().map(|error| error.error()).as_ref());
        }
    }

    /// Commits the first of these jobs, however long the database has to be waited for. Returns how many. An error is
    /// that of a job, or the end of the store.
    async fn persist(&mut self, jobs: &mut Jobs, tries: &mut CommitTries) -> Result<usize, CommitError> {
        let (mut pauses, mut lone_failures) = (RetryDelays::default(), 0);
        loop {
            let error = match self.commit(jobs, tries).await {
                Ok(count) => {
                    *tries = CommitTries::default();
                    self.availability.answered();
                    return Ok(count);
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
    async fn answers(&mut self) -> bool {
        let probed = match &mut self.link {
            WriteLink::File(file) => {
                let probed = match file.begin() {
                    Ok(mut tx) => probe(&mut tx).await,
                    Err(error) => Err(error),
                };
                let probed = probed.and_then(|()| file.commit());
                if probed.is_err() {
                    file.roll_back();
                }
                probed
            }
            WriteLink::Pool(pool, engine) => match Lease::acquire(pool, *engine).await {
                Ok(mut lease) => {
                    let probe = async { probe(&mut Tx::Pooled(lease.connection()?)).await };
                    let probed = pools::in_time(self.timeout, &mut 0, probe).await;
                    lease.end(&probed);
                    probed
                }
                Err(error) => Err(error),
            },
        };
        probed.is_ok()
    }

    /// Runs the first jobs in one transaction and returns how many.
    async fn commit(&mut self, jobs: &mut Jobs, tries: &mut CommitTries) -> Result<usize, CommitError> {
        let count = jobs.len().min(self.size);
        match &mut self.link {
            WriteLink::File(file) => {
                let jobs = jobs.get_mut(..count).unwrap_or_default();
                let committed = commit_to_file(file, jobs).await;
                committed.map(|()| self.state.committed(jobs)).inspect_err(|_| file.roll_back())?;
                Ok(count)
            }
            WriteLink::Pool(pool, engine) => {
                let (pool, engine) = (pool.clone(), *engine);
                self.commit_by_pool(&pool, engine, jobs, tries).await
            }
        }
    }

    /// Does not wait for ever: a try that was late is followed by one with half of the jobs, and that of a single job
    /// by one with twice the time. A transaction before it whose end is unknown is looked for first.
    async fn commit_by_pool(
        &mut self,
        pool: &AnyPool,
        engine: DbEngine,
        jobs: &mut Jobs,
        tries: &mut CommitTries,
    ) -> Result<usize, CommitError> {
        let (mut lease, begun) = (Lease::acquire(pool, engine).await?, Instant::now());
        let (count, timeout, mut late) = (jobs.len().min(self.size), self.timeout, tries.late);
        let run = self.run_once(lease.connection()?, engine, jobs, &mut tries.last);
        let outcome = pools::in_time(timeout, &mut late, run).await;
        lease.end(&outcome.as_ref().map_err(CommitError::error));
        let quick = timeout.is_none_or(|timeout| begun.elapsed() <= timeout / GROWTH_SHARE);
        match &outcome {
            _ if late > tries.late && count > 1 => self.size = count / 2,
            Ok(_) if quick => self.size = (self.size * 2).min(MAX_BATCH_JOBS),
            _ => tries.late = late,
        }
        outcome
    }

    async fn run_once(
        &mut self,
        connection: &mut AnyConnection,
        engine: DbEngine,
        jobs: &mut Jobs,
        last: &mut Option<(Transaction, usize)>,
    ) -> Result<usize, CommitError> {
        if let Some((before, count)) = last {
            match before.was_committed(connection).await {
                Ok(true) => return Ok(*count),
                Err(error) if error.is_outage() => return Err(error.into()),
                // A server that does not know it, after a restore or a failover, has not got it.
                Ok(false) | Err(_) => {}
            }
        }
        *last = None;
        let count = jobs.len().min(self.size);
        let mut tx = connection.begin_with(engine.begin()).await?;
        if engine == DbEngine::Postgres {
            let (transaction, owner) = Transaction::current(&mut tx).await?;
            *last = Some((transaction, count));
            if self.state.owner.get().is_some_and(|own| owner.as_ref() != Some(own)) {
                // For this process the store is closed from here on.
                self.availability.close();
                return Err(CommitError::Database(StoreError::Closed));
            }
        }
        let jobs = jobs.get_mut(..count).unwrap_or_default();
        if let Err((place, error)) = run_all(&mut Tx::Pooled(&mut tx), jobs).await {
            if let Err(left) = tx.rollback().await {
                let lost = StoreError::Unavailable(left.to_string());
                return Err(CommitError::Database(if error.is_outage() { error } else { lost }));
            }
            *last = None;
            return Err(CommitError::Job(place, error));
        }
        tx.commit().await?;
        self.state.committed(jobs);
        Ok(count)
    }
}

impl WriterState {
    /// Counts a commit, which these jobs shared.
    fn committed(&self, jobs: &Jobs) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        jobs.iter().for_each(|job| crash::point(job.name().after));
    }
}

async fn commit_to_file(file: &mut DbFile, jobs: &mut Jobs) -> Result<(), CommitError> {
    let ran = run_all(&mut file.begin()?, jobs).await;
    ran.map_err(|(place, error)| CommitError::Job(place, error))?;
    Ok(file.commit()?)
}

/// Runs jobs one after the other, until one fails.
async fn run_all(tx: &mut Tx<'_>, jobs: &mut Jobs) -> Result<(), (usize, StoreError)> {
    for (place, job) in jobs.iter_mut().enumerate() {
        job.run(tx).await.map_err(|error| (place, error))?;
    }
    jobs.iter().for_each(|job| crash::point(job.name().before));
    Ok(())
}

/// Writes something.
async fn probe(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let sql = "INSERT INTO owner (id, name) VALUES (2, 'probe')
        ON CONFLICT (id) DO UPDATE SET name = excluded.name";
    query(sql).execute(tx).await.map(drop)
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

fn answer(jobs: impl IntoIterator<Item = Box<dyn WriteJob>>, failure: Option<&StoreError>) {
    jobs.into_iter().for_each(|job| job.answer(failure.cloned()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DbLocation, writer::StoreWriter};
    use futures_util::future::join_all;

    const JOBS: usize = 64;
    /// Duration of one job; all jobs together take longer than a transaction may.
    const JOB_TIME: Duration = Duration::from_millis(5);
    const TIMEOUT: Duration = Duration::from_millis(100);

    #[tokio::test]
    async fn a_batch_that_is_late_goes_in_parts() {
        let availability = Arc::<Availability>::default();
        let connections = pools::connect(&DbLocation::Memory, &availability).await.unwrap();
        let writer = StoreWriter::start(connections.write, Some(TIMEOUT), availability).unwrap();
        let write = || {
            writer.write(&crash::SWEEP, (), |(), tx| {
                Box::pin(async move {
                    tokio::time::sleep(JOB_TIME).await;
                    probe(tx).await
                })
            })
        };
        let answers = join_all((0..JOBS).map(|_| write())).await;
        assert_eq!(answers, vec![Ok(()); JOBS]);
        let commits = writer.commits();
        assert!((3..JOBS as u64).contains(&commits), "{commits} transactions");
    }

    /// Checks that no caller waits for the store for ever.
    #[tokio::test]
    async fn the_end_of_the_writer_by_a_panic_is_told() {
        let folder = tempfile::TempDir::new().unwrap();
        for location in [DbLocation::Memory, DbLocation::Sqlite(folder.path().join("pudu.db"))] {
            let availability = Arc::<Availability>::default();
            let connections = pools::connect(&location, &availability).await.unwrap();
            let writer = StoreWriter::start(connections.write, None, availability.clone()).unwrap();
            let broken =
                writer.write(&crash::SWEEP, (), |(), _| Box::pin(async { panic!("a fault of ours") }));
            assert_eq!(broken.await, Err::<(), _>(StoreError::Closed));
            tokio::time::timeout(Duration::from_secs(10), writer.until_broken()).await.unwrap();
            assert_eq!(availability.sleep(Duration::from_secs(3600)).await, None, "nobody waits on");
        }
    }
}
