//! The run manager: whoever asks for a run (a chat, the page, a client of the API, an embedding program), a thread has one
//! at a time, and a client's run is in the store before it is answered, so that it ends exactly once.

use crate::{Client, Control, Run, RunTask, run_registry::LiveRun};
use pudu_base::{RunId, Seq, ThreadFolder, ThreadId};
use pudu_harness::RunState;
use pudu_store::{CancelAction, NewClientRun, StoreError, now};
use std::sync::{Arc, atomic::Ordering};
use tokio_util::sync::CancellationToken;

/// So many runs may wait on one thread.
const MAX_WAITING_ON_THREAD: usize = 64;
/// So many runs may work or wait in all.
const MAX_LIVE_RUNS: usize = 16_384;

/// What happens where a run is at work on the thread already: LangGraph's strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Multitask {
    /// The new run is refused.
    #[default]
    Reject,
    /// The other one is stopped; what it said stays.
    Interrupt,
    /// The other one is stopped, and nothing of it stays.
    Rollback,
    /// The new run waits.
    Enqueue,
}

impl Multitask {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Reject, "reject"),
        (Self::Interrupt, "interrupt"),
        (Self::Rollback, "rollback"),
        (Self::Enqueue, "enqueue"),
    ];

    /// Returns LangGraph's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(one, _)| *one == self).map_or("", |(_, word)| word)
    }

    /// Reads LangGraph's word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == word).map(|(one, _)| one)
    }

    fn cancels(self) -> Option<CancelAction> {
        match self {
            Self::Interrupt => Some(CancelAction::Interrupt),
            Self::Rollback => Some(CancelAction::Rollback),
            Self::Reject | Self::Enqueue => None,
        }
    }
}

/// A run that a client of the API asks for.
#[derive(Clone, Debug)]
pub struct ClientRun {
    /// The task.
    pub task: RunTask,
    /// The account that a new thread counts for.
    pub account: String,
    /// The assistant's name.
    pub assistant: String,
    /// The request, JSON, from which the task can be made again after a restart.
    pub request: String,
    /// The client's own notes on the run, JSON.
    pub metadata: String,
    /// What happens to another run of the thread.
    pub multitask: Multitask,
}

/// Reason why a run was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Another run is at work on the thread.
    #[error("run {0} is at work on the thread")]
    Busy(RunId),
    /// Too many runs wait.
    #[error("too many runs wait")]
    Full,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes the entry of a run.
pub(crate) fn live(task: &RunTask, control: Control) -> LiveRun {
    let (replay, closed) = Default::default();
    LiveRun { run: task.run.clone(), thread: task.thread.clone(), control, replay, closed }
}

impl Client {
    /// Accepts a client's run and starts it. It is in the store when this returns, and ends whether anybody listens or not.
    ///
    /// # Errors
    /// When its thread is busy and it does not want to wait, too many wait, or the store fails.
    pub async fn submit(&self, run: ClientRun) -> Result<Run, SubmitError> {
        let ClientRun { mut task, account, assistant, request, metadata, multitask } = run;
        task.by_client = true;
        let live = live(&task, Control::default());
        let others = self.0.runs.of_thread(&task.thread);
        if others.len() >= MAX_WAITING_ON_THREAD || self.0.runs.len() >= MAX_LIVE_RUNS {
            return Err(SubmitError::Full);
        }
        if let Err(other) = self.0.runs.open(live.clone(), multitask == Multitask::Reject) {
            return Err(SubmitError::Busy(other.run));
        }
        let new = NewClientRun {
            id: task.run.clone(),
            folder: ThreadFolder { owner: task.user.clone(), thread: task.thread.clone() },
            account,
            user: task.user.clone(),
            assistant,
            request,
            metadata,
            multitask: multitask.as_str().to_owned(),
            now: now(),
        };
        // A caller that goes away in between leaves no run behind of which nobody knows whether it is there.
        let client = self.clone();
        let accepted = self.0.tasks.spawn(async move {
            if let Err(error) = client.0.db.accept_run(new).await {
                client.0.runs.withdraw(&live.run);
                return Err(error.into());
            }
            if let Some(action) = multitask.cancels() {
                for other in &others {
                    client.stop(other, action).await?;
                }
            }
            let turn = client.0.runs.queue(&live.thread);
            Ok(client.spawn(task, live, None, turn))
        });
        accepted.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// Starts a client's run again that a death or a stop of the process cut, once `ready` is cancelled; `cancelled` is how
    /// it was told to stop before.
    pub fn resume_run(
        &self,
        mut task: RunTask,
        cancelled: Option<CancelAction>,
        ready: CancellationToken,
    ) -> Run {
        (task.by_client, task.resumed) = (true, true);
        let live = live(&task, Control::default());
        if let Some(action) = cancelled {
            live.control.roll_back.store(action == CancelAction::Rollback, Ordering::Relaxed);
            live.control.cancel.cancel();
        }
        self.0.runs.open(live.clone(), false).ok();
        let turn = self.0.runs.queue(&live.thread);
        self.spawn(task, live, None, async move {
            ready.cancelled().await;
            turn.await
        })
    }

    /// Returns a run that works, waits to, or ended a minute ago at most.
    #[must_use]
    pub fn live_run(&self, run: &RunId) -> Option<LiveRun> {
        self.0.runs.find(run)
    }

    /// Returns the runs of a thread that work or wait to, oldest first.
    #[must_use]
    pub fn live_runs(&self, thread: &ThreadId) -> Vec<LiveRun> {
        self.0.runs.of_thread(thread)
    }

    /// Stops a run. It is over when [`LiveRun::closed`] is cancelled.
    ///
    /// # Errors
    /// When the store fails: the run goes on.
    pub async fn stop(&self, live: &LiveRun, action: CancelAction) -> Result<(), StoreError> {
        self.0.db.cancel_run(&live.run, action).await?;
        live.control.roll_back.fetch_or(action == CancelAction::Rollback, Ordering::Relaxed);
        live.control.cancel.cancel();
        Ok(())
    }

    /// Changes a thread on which nothing works, and returns the position of its log then. It is done to its end, also if
    /// the caller goes away meanwhile.
    ///
    /// # Errors
    /// When a run works on it or waits to, or the store fails.
    pub async fn change_thread(
        &self,
        thread: &ThreadId,
        change: impl FnOnce(&mut RunState) + Send + 'static,
    ) -> Result<Seq, SubmitError> {
        let task = RunTask::new(thread.clone(), RunId::fresh());
        let live = live(&task, Control::default());
        self.0.runs.open(live.clone(), true).map_err(|other| SubmitError::Busy(other.run))?;
        let client = self.clone();
        let changed = self.0.tasks.spawn(async move {
            let slot = client.0.runs.queue(&task.thread).await;
            let changed = client.change_alone(&task, change).await;
            drop(slot);
            client.0.runs.withdraw(&live.run);
            changed
        });
        let changed = changed.await.map_err(|_| StoreError::Closed)?;
        changed.map_err(|error| StoreError::Unavailable(error.to_string()).into())
    }

    async fn change_alone(
        &self,
        task: &RunTask,
        change: impl FnOnce(&mut RunState),
    ) -> Result<Seq, pudu_base::LogError> {
        let (seq, state) = self.0.threads.take(&task.thread).await?;
        let mut turn = RunState::new(task.thread.clone(), task.run.clone(), seq, state, Arc::default());
        change(&mut turn);
        turn.commit(&self.0.threads.log()).await?;
        let Some((seq, state)) = turn.into_state() else { return Ok(seq) };
        self.0.threads.put(task.thread.clone(), seq, state);
        Ok(seq)
    }
}
