//! Commits jobs of the writer, many in one transaction.
//!
//! A failed job does not affect the others: the transaction is rolled back, the others run again without it, and it
//! runs alone at the end. During an outage of the database, all jobs wait. A job may therefore run more than once, and
//! only its last run counts. A transaction that times out is retried with half of the jobs, so that a batch that is too
//! large still completes.

use super::job::WriteJob;
use crate::{
    Result, StoreError,
    availability::{Availability, RetryDelays},
    crash,
    engines::{CommitError, DbEngine, Transaction, Tx, WriteLink, disk_step, query},
};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};
use tokio::time::Instant;

/// Maximum number of jobs in one transaction.
pub(crate) const MAX_BATCH_JOBS: usize = 256;
/// Number of outage-like failures that make a job count as failed, if the database accepts other writes.
const MAX_LONE_FAILURES: u32 = 5;
/// If a transaction takes at most its time limit divided by this number, the next one may be twice as large.
const GROWTH_SHARE: u32 = 4;

/// State of the writer that is shared with its handle.
#[derive(Default)]
pub(crate) struct WriterState {
    /// Number of committed transactions.
    pub(crate) commits: AtomicU64,
    /// The name under which this process has claimed the database.
    pub(crate) owner: OnceLock<String>,
}

pub(crate) struct BatchWriter {
    link: WriteLink,
    availability: Arc<Availability>,
    state: Arc<WriterState>,
    /// Maximum number of jobs in the next transaction.
    size: usize,
}

/// Outcome of the tries of a batch so far.
#[derive(Default)]
struct CommitTries {
    /// Number of tries of a single job that timed out.
    late: u32,
    /// The transaction whose outcome is unknown, and its number of jobs.
    last: Option<(Transaction, usize)>,
}

type Jobs = Vec<Box<dyn WriteJob>>;

/// A transaction of the first jobs of a batch.
struct SharedTransaction {
    jobs: Jobs,
    /// Number of jobs in the transaction.
    count: usize,
    last: Option<(Transaction, usize)>,
    state: Arc<WriterState>,
}

impl BatchWriter {
    pub(crate) fn new(link: WriteLink, availability: Arc<Availability>, state: Arc<WriterState>) -> Self {
        Self { link, availability, state, size: MAX_BATCH_JOBS }
    }

    pub(crate) fn availability(&self) -> Arc<Availability> {
        Arc::clone(&self.availability)
    }

    pub(crate) async fn close(self) {
        self.link.close().await;
    }

    /// Commits a batch and answers all its callers.
    pub(crate) async fn settle(&mut self, mut batch: Jobs) {
        let (mut aside, mut tries) = (Vec::new(), CommitTries::default());
        while !batch.is_empty() {
            match self.persist(&mut batch, &mut tries).await {
                Ok(count) => answer(batch.drain(..count), None),
                Err(CommitError::Job(place, _)) if batch.len() > 1 => aside.push(batch.remove(place)),
                Err(error) => answer(batch.drain(..), Some(error.error())),
            }
        }
        for job in aside {
            let mut alone = vec![job];
            let outcome = self.persist(&mut alone, &mut CommitTries::default()).await;
            answer(alone, outcome.as_ref().err().map(CommitError::error));
        }
    }

    /// Commits the first of these jobs and returns their number. Waits for an unavailable database without limit. An
    /// error belongs to a job, or means that the store is closed.
    async fn persist(&mut self, jobs: &mut Jobs, tries: &mut CommitTries) -> Result<usize, CommitError> {
        let (mut pauses, mut lone_failures) = (RetryDelays::default(), 0);
        loop {
            let error = match self.commit(jobs, tries).await {
                Ok(count) => {
                    *tries = CommitTries::default();
                    self.availability.answered();
                    return Ok(count);
                }
                // Either the job or the database failed. The retry of the other jobs will distinguish them.
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

    /// Returns whether the database accepts a write. Even a full database or a standby answers reads.
    async fn answers(&mut self) -> bool {
        let probe = |(): &mut (), tx: &mut Tx<'_>| {
            tx.run(tx.engine().begin())?;
            probe(tx)?;
            Ok(tx.run("COMMIT")?)
        };
        let ((), probed) = self.link.run(&mut 0, (), probe).await;
        probed.is_ok()
    }

    /// Runs the first jobs in one transaction and returns their number. After a timeout the next try has half of the
    /// jobs, or twice the time limit for a single job.
    async fn commit(&mut self, jobs: &mut Jobs, tries: &mut CommitTries) -> Result<usize, CommitError> {
        let (count, mut late, started_at) = (jobs.len().min(self.size), tries.late, Instant::now());
        let shared = SharedTransaction {
            jobs: std::mem::take(jobs),
            count,
            last: tries.last.take(),
            state: Arc::clone(&self.state),
        };
        let (shared, outcome) = self.link.run(&mut late, shared, SharedTransaction::run).await;
        (*jobs, tries.last) = (shared.jobs, shared.last);
        let quick = self.link.timeout().is_none_or(|timeout| started_at.elapsed() <= timeout / GROWTH_SHARE);
        match &outcome {
            // Another process has claimed the database, so the store is now closed for this process.
            Err(CommitError::Database(StoreError::Closed)) => self.availability.close(),
            _ if late > tries.late && count > 1 => self.size = count / 2,
            Ok(_) if quick => self.size = (self.size * 2).min(MAX_BATCH_JOBS),
            _ => tries.late = late,
        }
        outcome
    }
}

impl SharedTransaction {
    /// Runs and commits the jobs, unless an earlier transaction with unknown outcome turns out to be committed.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<usize, CommitError> {
        if let Some((before, count)) = &self.last {
            match before.was_committed(tx) {
                Ok(true) => return Ok(*count),
                Err(error) if error.is_outage() => return Err(error.into()),
                // A server that does not know the transaction, after a restore or a failover, has not committed it.
                Ok(false) | Err(_) => {}
            }
        }
        self.last = None;
        tx.run(tx.engine().begin())?;
        if tx.engine() == DbEngine::Postgres {
            let (transaction, owner) = Transaction::current(tx)?;
            self.last = Some((transaction, self.count));
            if self.state.owner.get().is_some_and(|own| owner.as_ref() != Some(own)) {
                return Err(CommitError::Database(StoreError::Closed));
            }
        }
        let jobs = self.jobs.get_mut(..self.count).unwrap_or_default();
        if let Err((place, error)) = run_all(tx, jobs) {
            if tx.engine() == DbEngine::Postgres
                && let Err(left) = tx.run("ROLLBACK")
            {
                let lost = StoreError::Unavailable(left.to_string());
                return Err(CommitError::Database(if error.is_outage() { error } else { lost }));
            }
            self.last = None;
            return Err(CommitError::Job(place, error));
        }
        if tx.engine() == DbEngine::Sqlite {
            disk_step("commit")?;
        }
        tx.run("COMMIT")?;
        self.state.committed(jobs);
        Ok(self.count)
    }
}

impl WriterState {
    /// Counts a commit of these jobs.
    fn committed(&self, jobs: &[Box<dyn WriteJob>]) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        jobs.iter().for_each(|job| crash::point(job.name().after));
    }
}

/// Runs jobs in order until one fails.
fn run_all(tx: &mut Tx<'_>, jobs: &mut [Box<dyn WriteJob>]) -> Result<(), (usize, StoreError)> {
    for (place, job) in jobs.iter_mut().enumerate() {
        job.run(tx).map_err(|error| (place, error))?;
    }
    jobs.iter().for_each(|job| crash::point(job.name().before));
    Ok(())
}

/// Writes a probe row.
fn probe(tx: &mut Tx<'_>) -> Result<()> {
    let sql = "INSERT INTO owner (id, name) VALUES (2, 'probe')
        ON CONFLICT (id) DO UPDATE SET name = excluded.name";
    query(sql).execute(tx).map(drop)
}

fn answer(jobs: impl IntoIterator<Item = Box<dyn WriteJob>>, failure: Option<&StoreError>) {
    jobs.into_iter().for_each(|job| job.answer(failure.cloned()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DbLocation, PostgresUrl, engines,
        writer::{StoreWriter, WriterPlace},
    };
    use futures_util::future::join_all;
    use sqlx::{AssertSqlSafe, Connection, PgConnection};
    use std::time::Duration;

    const JOBS: usize = 64;
    /// All jobs together, at 5 ms each, exceed the time limit of a transaction.
    const TIMEOUT: Duration = Duration::from_millis(100);

    /// Needs the server named by `PUDU_TEST_POSTGRES`: a statement on a file never times out.
    #[tokio::test]
    async fn a_batch_that_times_out_is_split() {
        let Ok(server) = std::env::var("PUDU_TEST_POSTGRES") else { return };
        let name = format!("pudu_batch_{}", std::process::id());
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let mut run =
            async |sql: String| sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.map(drop);
        run(format!("CREATE DATABASE {name}")).await.unwrap();
        let mut url = url::Url::parse(&server).unwrap();
        url.set_path(&name);
        let (answers, commits) = slow_jobs(PostgresUrl::parse(url.as_str()).unwrap()).await;
        run(format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
        assert_eq!(answers, vec![Ok(()); JOBS]);
        assert!((3..JOBS as u64).contains(&commits), "{commits} transactions");
    }

    async fn slow_jobs(url: PostgresUrl) -> (Vec<Result<()>>, u64) {
        let availability = Arc::<Availability>::default();
        let (link, _) = engines::connect(&DbLocation::Postgres(url), &availability).await.unwrap();
        let WriteLink::Postgres(writer) = link else { panic!("the store uses a server") };
        let link = WriteLink::Postgres(Box::new(engines::PgWriter { timeout: TIMEOUT, ..*writer }));
        let writer = StoreWriter::start(link, WriterPlace::Runtime, availability).unwrap();
        let write = || {
            writer.write(&crash::SWEEP, |tx| {
                query("SELECT pg_sleep(0.005)").execute(tx)?;
                probe(tx)
            })
        };
        (join_all((0..JOBS).map(|_| write())).await, writer.commits())
    }

    /// Checks that no caller waits for the store forever.
    #[tokio::test]
    async fn a_panic_of_the_writer_is_reported() {
        let folder = tempfile::TempDir::new().unwrap();
        for location in [DbLocation::Memory, DbLocation::Sqlite(folder.path().join("pudu.db"))] {
            for place in [WriterPlace::Thread, WriterPlace::Runtime] {
                let availability = Arc::<Availability>::default();
                let (link, _) = engines::connect(&location, &availability).await.unwrap();
                let writer = StoreWriter::start(link, place, availability.clone()).unwrap();
                let broken = writer.write::<()>(&crash::SWEEP, |_| panic!("an internal error"));
                assert_eq!(broken.await, Err(StoreError::Closed));
                tokio::time::timeout(Duration::from_secs(10), writer.until_broken()).await.unwrap();
                let wait = availability.sleep(Duration::from_secs(3600)).await;
                assert_eq!(wait, None, "no caller is still waiting");
            }
        }
    }
}
