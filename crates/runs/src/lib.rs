//! The run manager. A run requested by a chat, the API, a schedule or an embedding program waits in its thread's queue,
//! executes when its turn comes, and ends exactly once.
//!
//! Deliberately absent: the parts of an agent, chats, HTTP and configuration files.

mod admission;
mod conclude;
mod control;
mod follow;
mod reader;
mod readers;
mod rewind;
mod run;
mod run_end;
mod run_registry;
mod runs;
mod thread_events;

pub use admission::Admission;
pub use control::Control;
pub use follow::{FrameStream, STORE_TIMEOUT, StreamRequest};
pub use reader::RunReader;
pub use readers::RunReaders;
pub use run::Run;
pub use run_end::{EndNotes, MissingSecret, RunEnd};
pub use run_registry::{LiveRun, ThreadPlace};
pub use runs::{ClientRun, MAX_RESUMES, Multitask, SubmitError, UnfinishedRun};
pub use thread_events::{ThreadEvent, ThreadEventStream, ThreadEventsRequest};

use admission::Admissions;
use futures_util::FutureExt;
use pudu_agent::{Agent, RunTask};
use pudu_base::{Outcome, RunId, ThreadId};
use pudu_harness::Replay;
use run_registry::{RunRegistry, ThreadSlot};
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The runs of an agent.
#[derive(Clone)]
pub struct RunManager(Arc<Inner>);

struct Inner {
    agent: Agent,
    runs: RunRegistry,
    admissions: Admissions,
}

impl RunManager {
    /// Creates the manager of an agent's runs. At most `concurrency` runs execute at once; others wait.
    #[must_use]
    pub fn new(agent: Agent, concurrency: usize) -> Self {
        Self(Arc::new(Inner {
            runs: RunRegistry::default(),
            admissions: Admissions::new(concurrency),
            agent,
        }))
    }

    /// Returns the agent that the runs are assembled from.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.0.agent
    }

    /// Waits for the permit to execute a run. Returns `None` if `cancel` is cancelled first. Meant for callers that
    /// prepare a run before it starts.
    pub async fn admit(&self, cancel: &CancellationToken) -> Option<Admission> {
        self.0.admissions.admit(cancel).await
    }

    /// Reserves a place in a thread's queue for a run that starts later.
    #[must_use]
    pub fn place(&self, thread: &ThreadId) -> ThreadPlace {
        self.0.runs.place(thread)
    }

    /// Spawns a registered run, which executes when its turn on its thread comes.
    fn spawn(
        &self,
        task: RunTask,
        live: LiveRun,
        admission: Option<Admission>,
        turn: impl Future<Output = ThreadSlot> + Send + 'static,
    ) -> Run {
        let (ended, done) = oneshot::channel();
        let run = Run { id: live.run.clone(), replay: live.replay.clone(), done };
        let (manager, suspend, by_client) = (self.clone(), self.0.agent.suspension().clone(), task.by_client);
        self.0.agent.tasks().spawn(async move {
            // A run that is interrupted by the shutdown writes nothing, because it resumes after a restart.
            let Some(end) = suspend.run_until_cancelled(manager.run(task, &live, admission, turn)).await
            else {
                return;
            };
            if by_client {
                live.end.set(end.clone()).ok();
            }
            // The caller that started the run may be gone. The log has everything.
            ended.send(end).ok();
            manager.0.runs.close(&live.run);
        });
        run
    }

    /// Executes a task when its turn comes, and records its end before the thread is released.
    async fn run(
        &self,
        task: RunTask,
        live: &LiveRun,
        admission: Option<Admission>,
        turn: impl Future<Output = ThreadSlot>,
    ) -> RunEnd {
        let by_client = task.by_client;
        let started = run::wait(&self.0.admissions, &task, &live.control.cancel, admission, turn).await;
        let (_slot, worked) = match started {
            None => (None, Ok(run::did_nothing(Outcome::Stopped, live).await)),
            Some((slot, admission)) => {
                let work = Box::pin(run::execute(self.agent(), task, live, admission));
                (Some(slot), AssertUnwindSafe(work).catch_unwind().await)
            }
        };
        let (end, ending) = match worked {
            Ok(ended) => ended,
            Err(_) => {
                tracing::error!(run = %live.run, "aborted run after panic");
                run::broke_down(self.agent(), live, by_client).await
            }
        };
        conclude::store_end(self.0.agent.db(), &live.run, ending).await;
        end
    }

    /// Returns the replay ring of a run that is active or ended within the last minute.
    #[must_use]
    pub fn replay(&self, run: &RunId) -> Option<Arc<Replay>> {
        self.live_run(run).map(|live| live.replay)
    }

    /// Returns the active and waiting runs, oldest first.
    #[must_use]
    pub fn runs(&self) -> Vec<(RunId, Arc<Replay>)> {
        self.0.runs.list()
    }

    /// Returns the threads with active or waiting runs.
    #[must_use]
    pub fn busy_threads(&self) -> Vec<ThreadId> {
        self.0.runs.threads()
    }

    /// Returns the number of active and waiting runs.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.agent.tasks().len()
    }

    /// Interrupts all runs without recording an end, and lets no other run begin. They resume after a restart.
    pub async fn suspend(&self) {
        self.0.agent.suspension().cancel();
        self.0.agent.tasks().close();
        self.0.agent.tasks().wait().await;
    }

    /// Drops idle threads from memory; they are read again when needed. Also drops ended runs that are too old for
    /// readers.
    pub fn trim(&self) {
        self.0.agent.threads().trim();
        self.0.runs.trim();
    }
}
