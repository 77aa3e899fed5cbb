//! The run manager. Whether a chat, the page, an API client or an embedding program asks for a run, a thread has one at
//! a time. A client's run is in the store before the request is answered, so that it ends exactly once.

mod adoption;

use crate::{
    Client, Control, Run, RunEnd, RunTask,
    follow::STORE_TIMEOUT,
    run_registry::{LiveRun, ThreadPlace},
};
use pudu_base::{BoxFuture, FailureCause, LogError, Outcome, RunId, Seq, ThreadFolder, ThreadId, Update};
use pudu_harness::RunState;
use pudu_store::{CancelAction, Deletion, NewClientRun, RunRow, StoreError, now};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of runs that wait on one thread.
const MAX_WAITING_ON_THREAD: usize = 64;
/// Maximum number of runs that work or wait in total.
const MAX_LIVE_RUNS: usize = 16_384;

/// Handling of a new run while another works on the thread: LangGraph's strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Multitask {
    /// The new run is refused.
    #[default]
    Reject,
    /// The other run is stopped; its output is kept.
    Interrupt,
    /// The other run is stopped, and its output is removed.
    Rollback,
    /// The new run waits.
    Enqueue,
}

impl Multitask {
    /// Returns LangGraph's name of the strategy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Interrupt => "interrupt",
            Self::Rollback => "rollback",
            Self::Enqueue => "enqueue",
        }
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
    /// The request as JSON, from which the task can be rebuilt after a restart.
    pub request: String,
    /// The client's own notes on the run, JSON.
    pub metadata: String,
    /// Handling of other runs of the thread.
    pub multitask: Multitask,
    /// Whether the thread is deleted after the run.
    pub deletes_thread: bool,
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
    let (replay, closed, before, first_event, start, model, end) = Default::default();
    LiveRun {
        run: task.run.clone(),
        thread: task.thread.clone(),
        since: Instant::now(),
        control,
        replay,
        closed,
        before,
        first_event,
        start,
        model,
        end,
    }
}

/// Number of crashes of the process after which a run counts as their cause and is not resumed.
pub const MAX_RESUMES: i64 = 12;

/// An unfinished run of an earlier process, which belongs to this one now.
pub struct UnfinishedRun {
    /// Its record.
    pub row: RunRow,
    /// Its place on its thread.
    pub place: ThreadPlace,
}

impl Client {
    /// Accepts a client's run and starts it. It is in the store when this returns, and ends even without a reader.
    ///
    /// # Errors
    /// When its thread is busy and it does not want to wait, too many wait, or the store fails.
    pub async fn submit(&self, run: ClientRun) -> Result<Run, SubmitError> {
        let ClientRun { mut task, account, assistant, request, metadata, multitask, deletes_thread } = run;
        task.by_client = true;
        let live = live(&task, Control::default());
        let others = self.0.runs.of_thread(&task.thread);
        // The limit excludes the run that works. A run that stops all others waits for no place.
        let is_full = others.len() > MAX_WAITING_ON_THREAD && multitask.cancels().is_none();
        if is_full || self.0.runs.len() >= MAX_LIVE_RUNS {
            return Err(SubmitError::Full);
        }
        if let Err(other) = self.0.runs.open(live.clone(), multitask == Multitask::Reject) {
            return Err(SubmitError::Busy(other));
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
            deletes_thread,
            cancels: multitask
                .cancels()
                .map(|action| (action, others.iter().map(|other| other.run.clone()).collect())),
            now: now(),
        };
        // The task stores and starts the run even if the caller goes away in between.
        let client = self.clone();
        let accepted = self.0.tasks.spawn(async move {
            if let Err(error) = client.0.db.accept_run(new).await {
                client.0.runs.withdraw(&live.run);
                return Err(error.into());
            }
            if let Some(action) = multitask.cancels() {
                others.iter().for_each(|other| other.control.stop(action));
            }
            let turn = client.0.runs.queue(&live.thread);
            Ok(client.spawn(task, live, None, turn))
        });
        accepted.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// Takes over the unfinished runs of an earlier process. Each has its place on its thread: runs that had begun come
    /// before those that waited.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn take_over_runs(&self) -> Result<Vec<UnfinishedRun>, StoreError> {
        let rows = self.0.db.take_over_runs().await?;
        let placed = rows.into_iter().map(|row| UnfinishedRun { place: self.0.runs.place(&row.thread), row });
        Ok(placed.collect())
    }

    /// Resumes a client's run once `ready` is cancelled; `task` is its request.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn resume(
        &self,
        mut task: RunTask,
        UnfinishedRun { row, place }: UnfinishedRun,
        ready: CancellationToken,
    ) -> Result<(), StoreError> {
        task.by_client = true;
        let span = self.0.db.span_of_run(&task.thread, &task.run).await?;
        task.resumed = span.is_some();
        let mut live = live(&task, Control::default());
        if let Some((_, last)) = span {
            (live.before, live.first_event) = (last, now().unsigned_abs());
        }
        if let Some(action) = row.cancelled {
            live.control.stop(action);
        }
        self.0.db.resume_run(&row.id).await?;
        self.0.runs.open(live.clone(), false).ok();
        let cancel = live.control.cancel.clone();
        drop(self.spawn(task, live, None, async move {
            // A stopped run needs no tools.
            cancel.run_until_cancelled(ready.cancelled()).await;
            place.turn().await
        }));
        Ok(())
    }

    /// Ends an unfinished run that is not resumed.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn give_up_run(&self, run: &RunId) -> Result<(), StoreError> {
        let broken = Outcome::from(FailureCause::Broken);
        self.0.db.run_ended(run, &broken, now()).await
    }

    /// Returns a run that works, waits to, or ended a minute ago at most.
    #[must_use]
    pub fn live_run(&self, run: &RunId) -> Option<LiveRun> {
        self.0.runs.find(run)
    }

    /// Returns the end of a run of a client, or `None` while the run works. If the run ended more than a minute ago, or
    /// in an earlier process, the end is read from the thread and has no notices.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run_end(&self, run: &RunId) -> Result<Option<RunEnd>, StoreError> {
        if let Some(end) = self.live_run(run).and_then(|live| live.end.get().cloned()) {
            return Ok(Some(end));
        }
        let db = self.0.db.within(STORE_TIMEOUT);
        let Some(row) = db.run(run).await? else { return Ok(None) };
        let Some(outcome) = row.outcome() else { return Ok(None) };
        let Some((_, last)) = db.span_of_run(&row.thread, run).await? else {
            return Ok(Some(outcome.into()));
        };
        let (_, state) = self.0.db.state_at(&row.thread, last).await?;
        Ok(Some(RunEnd { heard: true, ..RunEnd::from(outcome).with_words_of(&state, run) }))
    }

    /// Returns the runs of a thread that work or wait to, oldest first.
    #[must_use]
    pub fn live_runs(&self, thread: &ThreadId) -> Vec<LiveRun> {
        self.0.runs.of_thread(thread)
    }

    /// Stops a run. It is over when [`LiveRun::closed`] is cancelled.
    ///
    /// # Errors
    /// When the store fails: the run continues.
    pub async fn stop(&self, live: &LiveRun, action: CancelAction) -> Result<(), StoreError> {
        self.0.db.cancel_run(&live.run, action).await?;
        live.control.stop(action);
        Ok(())
    }

    /// Changes a thread on which no run works, and returns the position of its log then. The change is completed even
    /// if the caller goes away meanwhile.
    ///
    /// # Errors
    /// When a run works on it or waits to, or the store fails.
    pub async fn change_thread(
        &self,
        thread: &ThreadId,
        change: impl FnOnce(&mut RunState) + Send + 'static,
    ) -> Result<Seq, SubmitError> {
        let live = self.open_alone(thread).map_err(SubmitError::Busy)?;
        let (client, thread, run) = (self.clone(), thread.clone(), live.run.clone());
        let changed = self.in_turn(live, async move { client.change(thread, run, change).await }).await?;
        changed.map_err(|error| StoreError::Unavailable(error.to_string()).into())
    }

    /// Clears a thread's goal. Runs that work or wait end with their next answer; a goal that they leave is removed
    /// after them, before any later run, and even if the future is not awaited.
    ///
    /// # Errors
    /// When the store fails.
    pub fn clear_goal(&self, thread: &ThreadId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.live_runs(thread).iter().for_each(|live| live.control.steering.drop_goal());
        let live = live(&RunTask::new(thread.clone(), RunId::fresh()), Control::default());
        self.0.runs.open(live.clone(), false).ok();
        let (client, thread, run) = (self.clone(), thread.clone(), live.run.clone());
        let clear = |turn: &mut RunState| {
            if turn.state().goal.is_some() {
                turn.apply(Update::Goal(None));
            }
        };
        let cleared = self.in_turn(live, async move {
            let cleared = client.change(thread, run, clear).await;
            cleared.inspect_err(|error| tracing::error!(%error, "failed to clear goal"))
        });
        Box::pin(async move {
            cleared.await?.map(drop).map_err(|error| StoreError::Unavailable(error.to_string()))
        })
    }

    /// Deletes a thread with its log, its runs and its files, unless a run works on it or waits to.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn delete_thread(&self, thread: &ThreadId) -> Result<Deletion, StoreError> {
        let Ok(live) = self.open_alone(thread) else { return Ok(Deletion::InUse) };
        let (client, thread) = (self.clone(), thread.clone());
        let delete = async move {
            let deletion = client.storage().delete(&thread).await;
            client.0.threads.forget(&thread);
            deletion
        };
        self.in_turn(live, delete).await?
    }

    /// Opens a run that asks no model, on a thread on which no run works.
    fn open_alone(&self, thread: &ThreadId) -> Result<LiveRun, RunId> {
        let live = live(&RunTask::new(thread.clone(), RunId::fresh()), Control::default());
        self.0.runs.open(live.clone(), true).map(|()| live)
    }

    /// Works on a thread when its turn comes, to the end, even if the caller goes away meanwhile.
    fn in_turn<T: Send + 'static>(
        &self,
        live: LiveRun,
        work: impl Future<Output = T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (turn, client) = (self.0.runs.queue(&live.thread), self.clone());
        let done = self.0.tasks.spawn(async move {
            let slot = turn.await;
            let done = work.await;
            drop(slot);
            client.0.runs.withdraw(&live.run);
            done
        });
        Box::pin(async move { done.await.map_err(|_| StoreError::Closed) })
    }

    async fn change(
        &self,
        thread: ThreadId,
        run: RunId,
        change: impl FnOnce(&mut RunState),
    ) -> Result<Seq, LogError> {
        let (seq, state) = self.0.threads.take(&thread).await?;
        let mut turn = RunState::new(thread.clone(), run, seq, state, Arc::default());
        change(&mut turn);
        turn.commit(&self.0.threads.log()).await?;
        let Some((seq, state)) = turn.into_state() else { return Ok(seq) };
        self.0.threads.put(thread, seq, state);
        Ok(seq)
    }
}
