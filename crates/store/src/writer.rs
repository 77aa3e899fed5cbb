//! The one writer, with group commit.
//!
//! Callers put a job into a bounded queue and wait. One task takes what has gathered, runs it in one
//! transaction and commits once, so that many callers share one fsync; nobody waits for a timer. A job
//! that fails is not allowed to harm its neighbours: the transaction is rolled back, the job is put aside to
//! run alone, and the others run again without it. So a job may run twice, and only its last run counts.
//!
//! What is deliberately absent: retries. An error goes to the caller, who knows whether it may ask again.

use crate::{StoreError, crash, engine::Engine};
use pudu_base::BoxFuture;
use sqlx::{AnyConnection, AnyPool, Connection};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many jobs may wait; the next caller waits for a place.
const QUEUE: usize = 1024;
/// How many jobs share a transaction at most.
const BATCH: usize = 256;

/// What a job does: with its data, inside a transaction. It must leave no trace when it fails.
pub(crate) type Work<D, T> = for<'a> fn(&'a D, &'a mut AnyConnection) -> BoxFuture<'a, Result<T, StoreError>>;

/// The way to the writer's task.
pub(crate) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
    commits: Arc<AtomicU64>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Writer {
    /// Starts the task. It ends when it is closed or when nobody can reach it any more.
    pub(crate) fn start(pool: AnyPool, engine: Engine) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (commits, stop, tasks) = (Arc::default(), CancellationToken::new(), TaskTracker::new());
        let task = Task { pool, engine, commits: Arc::clone(&commits) };
        tasks.spawn(task.run(queue, stop.clone()));
        tasks.close();
        Self { jobs, commits, stop, tasks }
    }

    /// Runs one write and answers once it is durable. A caller that goes away does not cancel it.
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
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Call { name, data, work, value: None, reply });
        self.jobs.send(job).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Tells how many transactions were committed.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Tells whether writes are still taken.
    pub(crate) fn is_open(&self) -> bool {
        !self.jobs.is_closed()
    }

    /// Takes no more, writes what waits, and returns when that is done.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("it was closed".to_owned())
}

/// A write that waits, whatever its types.
trait Job: Send {
    fn name(&self) -> &'static crash::Write;

    /// Runs the work and keeps what it gave.
    fn run<'a>(&'a mut self, tx: &'a mut AnyConnection) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Tells the caller: what the work gave, or why it does not count.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

struct Call<D, T> {
    name: &'static crash::Write,
    data: D,
    work: Work<D, T>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<D: Send + Sync, T: Send> Job for Call<D, T> {
    fn name(&self) -> &'static crash::Write {
        self.name
    }

    fn run<'a>(&'a mut self, tx: &'a mut AnyConnection) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.value = Some((self.work)(&self.data, tx).await?);
            Ok(())
        })
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let answer = match (failure, self.value) {
            (None, Some(value)) => Ok(value),
            (Some(error), _) => Err(error),
            (None, None) => Err(closed()),
        };
        // The caller may have gone; what was written stays written.
        drop(self.reply.send(answer));
    }
}

/// Why a batch was not committed.
enum Trouble {
    /// The job at this place failed.
    Job(usize, StoreError),
    /// The database did: no job is to blame.
    Database(StoreError),
}

struct Task {
    pool: AnyPool,
    engine: Engine,
    commits: Arc<AtomicU64>,
}

impl Task {
    async fn run(self, mut queue: mpsc::Receiver<Box<dyn Job>>, stop: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                () = stop.cancelled(), if !queue.is_closed() => queue.close(),
                taken = queue.recv_many(&mut batch, BATCH) => match taken {
                    0 => return,
                    _ => self.settle(std::mem::take(&mut batch)).await,
                },
            }
        }
    }

    /// Writes a batch and answers everybody in it.
    async fn settle(&self, mut batch: Vec<Box<dyn Job>>) {
        let mut aside = Vec::new();
        let outcome = loop {
            match self.commit(&mut batch).await {
                Err(Trouble::Job(place, _)) if batch.len() > 1 => aside.push(batch.remove(place)),
                outcome => break outcome,
            }
        };
        answer(batch, outcome);
        for job in aside {
            let mut alone = vec![job];
            let outcome = self.commit(&mut alone).await;
            answer(alone, outcome);
        }
    }

    /// Runs jobs in one transaction, and does not wait for ever.
    async fn commit(&self, jobs: &mut [Box<dyn Job>]) -> Result<(), Trouble> {
        let Some(patience) = self.engine.patience() else { return self.run_all(jobs).await };
        let late = || StoreError::Unavailable(format!("no answer within {} s", patience.as_secs()));
        let outcome = tokio::time::timeout(patience, self.run_all(jobs)).await;
        outcome.unwrap_or_else(|_| Err(Trouble::Database(late())))
    }

    /// All of the jobs count, or none.
    async fn run_all(&self, jobs: &mut [Box<dyn Job>]) -> Result<(), Trouble> {
        let mut connection = self.pool.acquire().await?;
        let mut tx = connection.begin_with(self.engine.begin()).await?;
        for (place, job) in jobs.iter_mut().enumerate() {
            if let Err(error) = job.run(&mut tx).await {
                tx.rollback().await?;
                return Err(Trouble::Job(place, error));
            }
        }
        jobs.iter().for_each(|job| crash::point(job.name().before));
        tx.commit().await?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        jobs.iter().for_each(|job| crash::point(job.name().after));
        Ok(())
    }
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

fn answer(batch: Vec<Box<dyn Job>>, outcome: Result<(), Trouble>) {
    let failure = match outcome {
        Ok(()) => None,
        Err(Trouble::Job(_, error)) => Some(error),
        Err(Trouble::Database(error)) => {
            tracing::error!(%error, writes = batch.len(), "nothing could be written");
            Some(error)
        }
    };
    batch.into_iter().for_each(|job| job.answer(failure.clone()));
}
