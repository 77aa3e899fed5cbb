//! The run manager. A thread has one active run at a time, whether it is requested by a chat, the page, an API client
//! or an embedding program. A client's run is stored before the request is answered, so that it ends exactly once.

mod adoption;
mod stored;

use crate::{
    Admission, Control, Run, RunEnd, RunManager,
    follow::STORE_TIMEOUT,
    readers::RunReaders,
    run_registry::{LiveRun, ThreadPlace},
};
use pudu_agent::RunTask;
use pudu_base::{BoxFuture, FailureCause, LogError, Outcome, RunId, Seq, ThreadFolder, ThreadId, Update};
use pudu_harness::RunState;
use pudu_langgraph::thread::API_ACCOUNT;
use pudu_store::{
    CancelAction, Deletion, NewClientRun, RunOrigin, RunRow, ScheduledClaim, ScheduledStart, StoreError, now,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of runs that wait on one thread.
const MAX_WAITING_ON_THREAD: usize = 64;
/// Maximum number of active and waiting runs in total.
const MAX_LIVE_RUNS: usize = 16_384;

/// How a new run is handled while the thread has another one: LangGraph's strategies.
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

/// A run requested by an API client.
#[derive(Clone, Debug)]
pub struct ClientRun {
    /// The task.
    pub task: RunTask,
    /// The assistant's name.
    pub assistant: String,
    /// The request as clients see it. It is stored with the task, so that the run can resume after a restart.
    pub request: Map<String, Value>,
    /// The client's metadata for the run, as JSON.
    pub metadata: String,
    /// How other runs of the thread are handled.
    pub multitask: Multitask,
    /// Whether the thread is deleted after the run.
    pub deletes_thread: bool,
    /// Its readers, which may join before it is accepted.
    pub readers: RunReaders,
}

impl ClientRun {
    /// Creates a run for a task. It is refused if its thread has another run.
    #[must_use]
    pub fn new(task: RunTask) -> Self {
        Self {
            task,
            assistant: String::new(),
            request: Map::new(),
            metadata: String::new(),
            multitask: Multitask::Reject,
            deletes_thread: false,
            readers: RunReaders::default(),
        }
    }
}

/// Why a run was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The thread has another run.
    #[error("run {0} is still running on the thread")]
    Busy(RunId),
    /// Too many runs wait.
    #[error("too many runs are waiting")]
    Full,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creates the registry entry of a run.
pub(crate) fn live(task: &RunTask, control: Control) -> LiveRun {
    let (replay, closed, before, first_event, start, model, end, readers) = Default::default();
    LiveRun {
        run: task.run.clone(),
        thread: task.thread.clone(),
        since: Instant::now(),
        sets_goal: task.goal.is_some(),
        control,
        replay,
        closed,
        before,
        first_event,
        start,
        model,
        end,
        readers,
    }
}

/// Maximum number of process crashes during a run. The run is then considered their cause and is not resumed.
pub const MAX_RESUMES: i64 = 12;

/// An unfinished run that was taken over from an earlier process.
pub struct UnfinishedRun {
    /// Its record.
    pub row: RunRow,
    /// Its place in its thread's queue.
    pub place: ThreadPlace,
}

impl RunManager {
    /// Starts a run. It waits until earlier runs on its thread have ended.
    #[must_use]
    pub fn start(&self, task: RunTask, control: Control) -> Run {
        self.start_admitted(task, control, None, None)
    }

    /// Like [`RunManager::start`], for a run that is already admitted or already has a place in the queue.
    #[must_use]
    pub fn start_admitted(
        &self,
        task: RunTask,
        control: Control,
        admission: Option<Admission>,
        place: Option<ThreadPlace>,
    ) -> Run {
        let live = live(&task, control);
        // Without `alone`, the run waits for earlier runs of the thread.
        self.0.runs.open(live.clone(), false).ok();
        let turn = place.unwrap_or_else(|| self.place(&live.thread)).turn();
        self.spawn(task, live, admission, turn)
    }

    /// Accepts a client's run and starts it. The run is stored when this returns, and executes even without a reader.
    ///
    /// # Errors
    /// If its thread is busy and its strategy is not to wait, too many runs are waiting, or the store fails.
    pub async fn submit(&self, run: ClientRun) -> Result<Run, SubmitError> {
        let db = self.0.agent.db().clone();
        let accepted = self.accept(run, RunOrigin::Api, async move |new| db.accept_run(new).await.map(Ok));
        // Only a claim refuses.
        accepted.await?.map_err(|()| StoreError::Closed.into())
    }

    /// Accepts the run of a scheduled task and starts it, unless its due time was claimed before. `claim` makes the claim
    /// that stores the run.
    ///
    /// # Errors
    /// If too many runs wait, or the store fails.
    pub async fn submit_scheduled(
        &self,
        run: ClientRun,
        claim: impl FnOnce(NewClientRun) -> ScheduledClaim + Send + 'static,
    ) -> Result<ScheduledStart, SubmitError> {
        let db = self.0.agent.db().clone();
        let accepted = self.accept(run, RunOrigin::Schedule, async move |new| {
            Ok(match db.claim_scheduled(claim(new)).await? {
                ScheduledStart::Started(_) => Ok(()),
                refused => Err(refused),
            })
        });
        Ok(accepted.await?.map_or_else(|refused| refused, |_| ScheduledStart::Started(None)))
    }

    /// Stores a run by `store`, and starts it unless `store` refuses it.
    async fn accept<R: Send + 'static, F>(
        &self,
        run: ClientRun,
        origin: RunOrigin,
        store: impl FnOnce(NewClientRun) -> F + Send + 'static,
    ) -> Result<Result<Run, R>, SubmitError>
    where
        F: Future<Output = Result<Result<(), R>, StoreError>> + Send,
    {
        let ClientRun { mut task, assistant, request, metadata, multitask, deletes_thread, readers } = run;
        task.by_client = true;
        let live = LiveRun { readers, ..live(&task, Control::default()) };
        let others = self.0.runs.of_thread(&task.thread);
        // The limit excludes the active run. A run that stops all others does not queue.
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
            account: API_ACCOUNT.to_owned(),
            origin,
            user: task.user.clone(),
            assistant,
            request: stored::request(request, &task),
            metadata,
            multitask: multitask.as_str().to_owned(),
            deletes_thread,
            cancels: multitask
                .cancels()
                .map(|action| (action, others.iter().map(|other| other.run.clone()).collect())),
            now: now(),
        };
        // The task stores and starts the run even if the caller is cancelled.
        let client = self.clone();
        let accepted = self.0.agent.tasks().spawn(async move {
            match store(new).await {
                Ok(Ok(())) => {}
                Ok(Err(refused)) => {
                    client.0.runs.withdraw(&live.run);
                    return Ok(Err(refused));
                }
                Err(error) => {
                    client.0.runs.withdraw(&live.run);
                    return Err(error.into());
                }
            }
            if let Some(action) = multitask.cancels() {
                others.iter().for_each(|other| other.control.stop(action));
            }
            let turn = client.0.runs.queue(&live.thread);
            Ok(Ok(client.spawn(task, live, None, turn)))
        });
        accepted.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// Takes over the unfinished runs of an earlier process. Each gets its place in its thread's queue: runs that had
    /// begun come before runs that waited.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn take_over_runs(&self) -> Result<Vec<UnfinishedRun>, StoreError> {
        let rows = self.0.agent.db().take_over_runs().await?;
        let placed = rows.into_iter().map(|row| UnfinishedRun { place: self.0.runs.place(&row.thread), row });
        Ok(placed.collect())
    }

    /// Resumes the runs of API clients, once `ready` is cancelled. Ends runs whose request cannot be read, that crashed
    /// the process too often, or that belong to an embedding program.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn resume_runs(
        &self,
        unfinished: Vec<UnfinishedRun>,
        ready: &CancellationToken,
    ) -> Result<(), StoreError> {
        for run in unfinished {
            let task = stored::task(&run.row).filter(|_| run.row.resumed < MAX_RESUMES);
            let (id, thread, resumed) = (run.row.id.clone(), run.row.thread.clone(), run.row.resumed);
            match task {
                Some(task) => {
                    self.resume(task, run, ready.clone()).await?;
                    tracing::info!(run = %id, %thread, "resumed run of a client");
                }
                None => {
                    tracing::error!(run = %id, %thread, resumed, "ended run that cannot be resumed");
                    self.give_up_run(&id).await?;
                }
            }
        }
        Ok(())
    }

    async fn resume(
        &self,
        mut task: RunTask,
        UnfinishedRun { row, place }: UnfinishedRun,
        ready: CancellationToken,
    ) -> Result<(), StoreError> {
        task.by_client = true;
        let span = self.0.agent.db().span_of_run(&task.thread, &task.run).await?;
        task.resumed = span.is_some();
        let mut live = live(&task, Control::default());
        if let Some((_, last)) = span {
            (live.before, live.first_event) = (last, now().unsigned_abs());
        }
        if let Some(action) = row.cancelled {
            live.control.stop(action);
        }
        self.0.agent.db().resume_run(&row.id).await?;
        self.0.runs.open(live.clone(), false).ok();
        let cancel = live.control.cancel.clone();
        drop(self.spawn(task, live, None, async move {
            // A stopped run needs no tools, so it does not wait for them.
            cancel.run_until_cancelled(ready.cancelled()).await;
            place.turn().await
        }));
        Ok(())
    }

    /// Ends an unfinished run that is not resumed.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn give_up_run(&self, run: &RunId) -> Result<(), StoreError> {
        let broken = Outcome::from(FailureCause::Broken);
        self.0.agent.db().run_ended(run, &broken, now()).await
    }

    /// Finds a run that is active, waiting, or ended within the last minute.
    #[must_use]
    pub fn live_run(&self, run: &RunId) -> Option<LiveRun> {
        self.0.runs.find(run)
    }

    /// Returns the end of a client's run, or `None` while the run is active. If the run ended more than a minute ago,
    /// or in an earlier process, the end is read from the thread and has no notices.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn run_end(&self, run: &RunId) -> Result<Option<RunEnd>, StoreError> {
        if let Some(end) = self.live_run(run).and_then(|live| live.end.get().cloned()) {
            return Ok(Some(end));
        }
        let db = self.0.agent.db().within(STORE_TIMEOUT);
        let Some(row) = db.run(run).await? else { return Ok(None) };
        let Some(outcome) = row.outcome() else { return Ok(None) };
        let Some((_, last)) = db.span_of_run(&row.thread, run).await? else {
            return Ok(Some(outcome.into()));
        };
        let (_, state) = self.0.agent.db().state_at(&row.thread, last).await?;
        Ok(Some(RunEnd { heard: true, ..RunEnd::from(outcome).with_words_of(&state, run) }))
    }

    /// Returns the active and waiting runs of a thread, oldest first.
    #[must_use]
    pub fn live_runs(&self, thread: &ThreadId) -> Vec<LiveRun> {
        self.0.runs.of_thread(thread)
    }

    /// Stops a run. It has ended once [`LiveRun::closed`] is cancelled.
    ///
    /// # Errors
    /// If the store fails. The run then continues.
    pub async fn stop(&self, live: &LiveRun, action: CancelAction) -> Result<(), StoreError> {
        self.0.agent.db().cancel_run(&live.run, action).await?;
        live.control.stop(action);
        Ok(())
    }

    /// Changes a thread without an active run, and returns the new position of its log. The change is completed even if
    /// the caller is cancelled.
    ///
    /// # Errors
    /// If the thread has an active or waiting run, or the store fails.
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

    /// Returns whether a thread has an open goal, or an active or waiting run will set one.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn has_goal(&self, thread: &ThreadId) -> Result<bool, LogError> {
        let state = self.0.agent.state(thread).await?;
        let is_set = state.goal.is_some_and(|goal| goal.is_open());
        Ok(is_set || self.live_runs(thread).iter().any(|live| live.sets_goal))
    }

    /// Clears a thread's goal. Active and waiting runs end with their next answer. A goal that they store meanwhile is
    /// removed after them and before any later run, even if the future is not awaited.
    ///
    /// # Errors
    /// If the store fails.
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

    /// Deletes a thread with its log, its runs and its files, unless it has an active or waiting run.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn delete_thread(&self, thread: &ThreadId) -> Result<Deletion, StoreError> {
        let Ok(live) = self.open_alone(thread) else { return Ok(Deletion::InUse) };
        let (client, thread) = (self.clone(), thread.clone());
        let delete = async move {
            let deletion = client.0.agent.storage().delete(&thread).await;
            client.0.agent.threads().forget(&thread);
            deletion
        };
        self.in_turn(live, delete).await?
    }

    /// Registers a run that calls no model, on a thread without other runs.
    fn open_alone(&self, thread: &ThreadId) -> Result<LiveRun, RunId> {
        let live = live(&RunTask::new(thread.clone(), RunId::fresh()), Control::default());
        self.0.runs.open(live.clone(), true).map(|()| live)
    }

    /// Executes work on a thread when its turn comes, and completes it even if the caller is cancelled.
    fn in_turn<T: Send + 'static>(
        &self,
        live: LiveRun,
        work: impl Future<Output = T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (turn, client) = (self.0.runs.queue(&live.thread), self.clone());
        let done = self.0.agent.tasks().spawn(async move {
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
        let (seq, state) = self.0.agent.threads().take(&thread).await?;
        let mut turn = RunState::new(thread.clone(), run, seq, state, Arc::default());
        change(&mut turn);
        turn.commit(&self.0.agent.threads().log()).await?;
        let Some((seq, state)) = turn.into_state() else { return Ok(seq) };
        self.0.agent.threads().put(thread, seq, state);
        Ok(seq)
    }
}
