//! The store's single writer, with group commit.
//!
//! Callers put a job into a bounded queue and wait. One task takes all queued jobs, runs them in one transaction and
//! commits once, so that many callers share one fsync. No caller waits for a timer. A write without a waiting caller is
//! added to the transaction of the next batch, before its jobs, or runs alone after a short delay. For a SQLite file
//! the task has its own thread and runs the statements itself, so that a batch costs one hand-over instead of one per
//! statement. In a simulation the task runs in the caller's runtime.

mod batch;
mod job;

use crate::{
    Result, StoreError,
    availability::Availability,
    crash,
    engines::{Tx, WriteLink},
};
use batch::{BatchWriter, MAX_BATCH_JOBS, WriterState};
use job::{WriteCall, WriteJob};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    thread,
    time::Duration,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::dispatcher;

/// Maximum number of queued jobs. Further callers wait for space.
const MAX_QUEUED_JOBS: usize = 1024;

/// How long a write without a waiting caller waits for the next batch.
const BATCH_DELAY: Duration = Duration::from_millis(20);

/// Writes without a waiting caller. Their number is small, because each belongs to work whose next step waits for the
/// store.
#[derive(Default)]
struct SoonJobs {
    jobs: Mutex<SoonQueue>,
    filled: Notify,
}

#[derive(Default)]
struct SoonQueue {
    jobs: Vec<Box<dyn WriteJob>>,
    /// Whether the writer's task has ended.
    is_closed: bool,
}

impl SoonJobs {
    fn lock(&self) -> MutexGuard<'_, SoonQueue> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Box<dyn WriteJob>) {
        let mut queue = self.lock();
        if queue.is_closed {
            drop(queue);
            return job.answer(Some(StoreError::Closed));
        }
        queue.jobs.push(job);
        drop(queue);
        self.filled.notify_one();
    }

    fn take(&self) -> Vec<Box<dyn WriteJob>> {
        std::mem::take(&mut self.lock().jobs)
    }

    /// Refuses further jobs, and fails the queued ones.
    fn close(&self) {
        self.lock().is_closed = true;
        self.take().into_iter().for_each(|job| job.answer(Some(StoreError::Closed)));
    }

    /// Returns when jobs have waited for [`BATCH_DELAY`].
    async fn due(&self) {
        self.filled.notified().await;
        tokio::time::sleep(BATCH_DELAY).await;
    }
}

/// Where the writer's task runs.
#[derive(Clone, Copy)]
pub(crate) enum WriterPlace {
    /// In its own thread, because its statements block.
    Thread,
    /// In the caller's runtime.
    Runtime,
}

/// A handle of the writer's task.
pub(crate) struct StoreWriter {
    jobs: mpsc::Sender<Box<dyn WriteJob>>,
    soon: Arc<SoonJobs>,
    state: Arc<WriterState>,
    stop: CancellationToken,
    /// Cancelled when the task has panicked.
    ended: CancellationToken,
    tasks: TaskTracker,
}

impl StoreWriter {
    /// Starts the task. It ends when it is closed or when its handle is dropped.
    pub(crate) fn start(
        link: WriteLink,
        place: WriterPlace,
        availability: Arc<Availability>,
    ) -> Result<Self> {
        let (jobs, queue) = mpsc::channel(MAX_QUEUED_JOBS);
        let (state, tasks) = (Arc::default(), TaskTracker::new());
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let writer = BatchWriter::new(link, availability, Arc::clone(&state));
        let soon = Arc::<SoonJobs>::default();
        let task = tasks.track_future(run(writer, queue, soon.clone(), stop.clone(), ended.clone()));
        match place {
            WriterPlace::Thread => {
                spawn_thread(task).map_err(|error| StoreError::Refused(format!("the writer: {error}")))?
            }
            WriterPlace::Runtime => drop(tokio::spawn(task)),
        }
        tasks.close();
        Ok(Self { jobs, soon, state, stop, ended, tasks })
    }

    /// Runs one write and returns when it is durable. Dropping the future does not cancel the write.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        name: &'static crash::Write,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = WriteCall { name, work, value: None, reply: Some(reply) };
        self.jobs.send(Box::new(job)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Queues a write for the next batch or after a short delay. It fails if the store is closed.
    pub(crate) fn write_soon<T: Send + 'static>(
        &self,
        name: &'static crash::Write,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
        reply: Option<oneshot::Sender<Result<T>>>,
    ) {
        self.soon.push(Box::new(WriteCall { name, work, value: None, reply }));
    }

    /// Returns the number of committed transactions.
    pub(crate) fn commits(&self) -> u64 {
        self.state.commits.load(Ordering::Relaxed)
    }

    /// Returns whether this process has claimed the database.
    pub(crate) fn is_claimed(&self) -> bool {
        self.state.owner.get().is_some()
    }

    /// Records the owner of the claim. From now on, writes fail once another process has claimed the database.
    pub(crate) fn claimed_as(&self, owner: String) {
        self.state.owner.set(owner).ok();
    }

    /// Returns whether writes are still accepted.
    pub(crate) fn is_open(&self) -> bool {
        !self.jobs.is_closed()
    }

    /// Waits until the task has panicked. No write is possible after that.
    pub(crate) async fn until_broken(&self) {
        self.ended.cancelled().await;
    }

    /// Refuses further jobs, commits the queued ones, and returns when the task has ended.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

/// Notifies waiting callers of the task's end, even after a panic, so that they do not wait forever.
struct WriterEnd {
    availability: Arc<Availability>,
    soon: Arc<SoonJobs>,
    ended: CancellationToken,
}

impl Drop for WriterEnd {
    fn drop(&mut self) {
        self.soon.close();
        if thread::panicking() {
            self.availability.close();
            self.ended.cancel();
        }
    }
}

async fn run(
    mut writer: BatchWriter,
    mut queue: mpsc::Receiver<Box<dyn WriteJob>>,
    soon: Arc<SoonJobs>,
    stop: CancellationToken,
    ended: CancellationToken,
) {
    let _end = WriterEnd { availability: writer.availability(), soon: soon.clone(), ended };
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled(), if !queue.is_closed() => queue.close(),
            taken = queue.recv_many(&mut batch, MAX_BATCH_JOBS) => {
                let mut jobs = soon.take();
                jobs.append(&mut batch);
                writer.settle(jobs).await;
                if taken == 0 {
                    return writer.close().await;
                }
            }
            () = soon.due() => writer.settle(soon.take()).await,
        }
    }
}

/// Runs the task in its own thread, with the caller's log subscriber. The runtime is created there, because it must not
/// be dropped inside a task.
fn spawn_thread(task: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let work = move || match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime.block_on(task),
        Err(error) => tracing::error!(%error, "failed to start the store's writer"),
    };
    let log = dispatcher::get_default(Clone::clone);
    let logged = move || dispatcher::with_default(&log, work);
    thread::Builder::new().name("store-writer".to_owned()).spawn(logged).map(drop)
}
