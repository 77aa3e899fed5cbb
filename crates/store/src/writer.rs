//! The one writer, with group commit.
//!
//! Callers put a job into a bounded queue and wait. One task takes the gathered jobs, runs them in one transaction and
//! commits once, so that many callers share one fsync; no caller waits for a timer. A write without a waiting caller
//! goes before the next batch, into the same transaction, and after a moment alone. For a file the task is a thread of
//! its own, which does SQLite's work itself: a batch costs one hand-over, not one for each statement. Only in a
//! simulation it is a task like any other.

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

/// How many jobs may wait; the next caller waits for a place.
const MAX_QUEUED_JOBS: usize = 1024;

/// How long a write without a waiting caller is delayed for a write with one.
const SOON: Duration = Duration::from_millis(20);

/// Writes without a waiting caller. They are few: each belongs to work whose next step waits for the store.
#[derive(Default)]
struct SoonJobs {
    jobs: Mutex<SoonQueue>,
    filled: Notify,
}

#[derive(Default)]
struct SoonQueue {
    jobs: Vec<Box<dyn WriteJob>>,
    /// Whether no task takes the jobs any more.
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

    /// Takes no more jobs, and answers those that no task takes.
    fn close(&self) {
        self.lock().is_closed = true;
        self.take().into_iter().for_each(|job| job.answer(Some(StoreError::Closed)));
    }

    /// Returns when some have waited long enough.
    async fn due(&self) {
        self.filled.notified().await;
        tokio::time::sleep(SOON).await;
    }
}

/// Where the writer's task runs.
#[derive(Clone, Copy)]
pub(crate) enum WriterPlace {
    /// In a thread of its own: its statements block.
    Thread,
    /// In the caller's runtime.
    Runtime,
}

/// The way to the writer's task.
pub(crate) struct StoreWriter {
    jobs: mpsc::Sender<Box<dyn WriteJob>>,
    soon: Arc<SoonJobs>,
    state: Arc<WriterState>,
    stop: CancellationToken,
    /// Cancelled when the task ended by a panic.
    ended: CancellationToken,
    tasks: TaskTracker,
}

impl StoreWriter {
    /// Starts the task. It ends when it is closed or when no handle to it is left.
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

    /// Runs one write and answers once it is durable. A caller that goes away does not cancel it.
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

    /// Has a write done with the next one, or soon. A store that is closed does it no more.
    pub(crate) fn write_soon<T: Send + 'static>(
        &self,
        name: &'static crash::Write,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
        reply: Option<oneshot::Sender<Result<T>>>,
    ) {
        self.soon.push(Box::new(WriteCall { name, work, value: None, reply }));
    }

    /// Returns how many transactions were committed.
    pub(crate) fn commits(&self) -> u64 {
        self.state.commits.load(Ordering::Relaxed)
    }

    /// Returns whether this process has claimed the database.
    pub(crate) fn is_claimed(&self) -> bool {
        self.state.owner.get().is_some()
    }

    /// From now on nothing is written once another process than this has claimed the database.
    pub(crate) fn claimed_as(&self, owner: String) {
        self.state.owner.set(owner).ok();
    }

    /// Returns whether writes are still taken.
    pub(crate) fn is_open(&self) -> bool {
        !self.jobs.is_closed()
    }

    /// Waits until the task ended without [`Self::close`]: nothing is written any more.
    pub(crate) async fn until_broken(&self) {
        self.ended.cancelled().await;
    }

    /// Takes no more jobs, writes those that wait, and returns when that is done.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

/// Ends the task for those who wait for it, also when that is by a panic: they would wait for ever.
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

/// Runs the task in a thread of its own, which logs to where the caller logs. The runtime is made there: it may not be
/// dropped in a task.
fn spawn_thread(task: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let work = move || match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime.block_on(task),
        Err(error) => tracing::error!(%error, "failed to start the store's writer"),
    };
    let log = dispatcher::get_default(Clone::clone);
    let logged = move || dispatcher::with_default(&log, work);
    thread::Builder::new().name("store-writer".to_owned()).spawn(logged).map(drop)
}
