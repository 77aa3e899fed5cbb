//! The transaction that starts a run of a scheduled task. It records the due time, advances the task to its next time,
//! and stores the work itself, so that no crash loses or repeats a due time.

use super::{
    ScheduleKind, ScheduledTask, ScheduledTaskStatus, find,
    history::{ScheduledCause, ScheduledRunStatus},
    update,
};
use crate::{
    Db, InboxItemId, InsertedEvent, NewClientRun, NewInboxItem, NewTurn, Result, crash,
    engines::{Tx, query},
    inbox, outbox,
    runs::records,
};

/// Age at which an active run no longer counts for the limit of all tasks, in milliseconds. Its message may wait for a
/// bot that is not connected.
const STUCK_AFTER: i64 = 24 * 60 * 60 * 1000;
/// Error of a run that was skipped.
const STILL_ACTIVE: &str = "skipped: a previous run of this task is still active";
/// Error of a run whose thread was deleted.
const NO_THREAD: &str = "Thread not found";

/// A run of a scheduled task that is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledClaim {
    /// The task.
    pub task: String,
    /// Id of the new run of the task.
    pub id: String,
    /// Its cause. A due run is started only if `scheduled_for` is still the task's next time.
    pub cause: ScheduledCause,
    /// The planned time, or the current time for a start by hand.
    pub scheduled_for: i64,
    /// The task's next time after this run. A start by hand does not change it.
    pub next: Option<i64>,
    /// The work.
    pub work: ScheduledWork,
    /// Maximum number of active runs of all tasks.
    pub max_active: i64,
    /// The current time.
    pub now: i64,
}

/// Work of a run of a scheduled task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduledWork {
    /// A run on a thread. `needs_thread` requires that the thread exists.
    Thread {
        /// The run.
        run: Box<NewClientRun>,
        /// Whether the thread must exist.
        needs_thread: bool,
    },
    /// A message in a chat. Its event key is the id of the run of the task.
    Chat(Box<NewInboxItem>),
    /// It cannot be started, for this reason.
    Impossible(String),
}

/// Result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduledStart {
    /// The run is stored. It has this event in the inbox if it belongs to a chat.
    Started(Option<InboxItemId>),
    /// The due time is recorded as skipped, because an earlier run is active.
    Skipped,
    /// The due time is recorded as failed, for this reason.
    Failed(String),
    /// The task has an active run. Nothing was changed.
    Active,
    /// Too many tasks have an active run. Nothing was changed.
    Full,
    /// The task was changed or deleted meanwhile. Nothing was changed.
    Stale,
}

impl Db {
    /// Starts a run of a scheduled task, at most once for each due time.
    pub async fn claim_scheduled(&self, claim: ScheduledClaim) -> Result<ScheduledStart> {
        let owner = self.process().to_owned();
        self.write(&crash::CLAIM_SCHEDULED, move |tx| start(tx, &claim, &owner)).await
    }

    /// Pauses a task that failed at least `failures` times, and stores the notice for its owner. Returns whether it was
    /// paused now.
    pub async fn pause_failing(&self, task: &str, failures: i64, notice: Option<NewTurn>) -> Result<bool> {
        let (task, owner) = (task.to_owned(), self.process().to_owned());
        self.write(&crash::PAUSE_SCHEDULED, move |tx| {
            let sql = "UPDATE scheduled_tasks SET status = 'paused'
                WHERE id = $1 AND status = 'enabled' AND failures >= $2";
            let is_paused = query(sql).bind(&task).bind(failures).execute(tx)? > 0;
            if let Some(notice) = notice.as_ref().filter(|_| is_paused) {
                outbox::open(tx, notice, &owner)?;
            }
            Ok(is_paused)
        })
        .await
    }
}

fn inserted(event: InsertedEvent) -> Option<InboxItemId> {
    match event {
        InsertedEvent::New(id) => Some(id),
        InsertedEvent::Duplicate => None,
    }
}

fn start(tx: &mut Tx<'_>, claim: &ScheduledClaim, owner: &str) -> Result<ScheduledStart> {
    let is_due = claim.cause == ScheduledCause::Scheduled;
    let Some(task) = find(tx, &claim.task)? else { return Ok(ScheduledStart::Stale) };
    let is_next = task.status == ScheduledTaskStatus::Enabled && task.next_run == Some(claim.scheduled_for);
    if is_due && !is_next {
        return Ok(ScheduledStart::Stale);
    }
    let active = "SELECT 1 FROM scheduled_task_runs WHERE task = $1 AND status IN ('queued', 'running')";
    if query(active).bind(&claim.task).finds(tx)? {
        if is_due {
            let skipped = ScheduledRunStatus::Skipped;
            give_up(tx, task, claim, skipped, STILL_ACTIVE)?;
            return Ok(ScheduledStart::Skipped);
        }
        return Ok(ScheduledStart::Active);
    }
    if let Some(reason) = problem(tx, &claim.work)? {
        give_up(tx, task, claim, ScheduledRunStatus::Failed, &reason)?;
        return Ok(ScheduledStart::Failed(reason));
    }
    let active =
        "SELECT COUNT(*) FROM scheduled_task_runs WHERE status IN ('queued', 'running') AND created > $1";
    if query(active).bind(claim.now - STUCK_AFTER).fetch_one::<i64>(tx)? >= claim.max_active {
        return Ok(ScheduledStart::Full);
    }
    launch(tx, task, claim, owner).map(ScheduledStart::Started)
}

/// Returns why the work cannot start.
fn problem(tx: &mut Tx<'_>, work: &ScheduledWork) -> Result<Option<String>> {
    Ok(match work {
        ScheduledWork::Impossible(reason) => Some(reason.clone()),
        ScheduledWork::Thread { run, needs_thread: true } => {
            let sql = "SELECT 1 FROM threads WHERE id = $1 AND user_id = $2";
            let known = query(sql).bind(&run.folder.thread).bind(&run.user).finds(tx)?;
            (!known).then(|| NO_THREAD.to_owned())
        }
        ScheduledWork::Thread { .. } | ScheduledWork::Chat(_) => None,
    })
}

/// Records a run that does not start, and advances the task.
fn give_up(
    tx: &mut Tx<'_>,
    task: ScheduledTask,
    claim: &ScheduledClaim,
    status: ScheduledRunStatus,
    error: &str,
) -> Result<()> {
    record(tx, claim, status, Some(error))?;
    let is_due = claim.cause == ScheduledCause::Scheduled;
    let is_over = is_due && task.kind == ScheduleKind::Once;
    update(
        tx,
        &ScheduledTask {
            status: if is_over { ScheduledTaskStatus::Failed } else { task.status },
            next_run: if is_due { claim.next } else { task.next_run },
            last_error: Some(error.to_owned()),
            failures: task.failures + i64::from(status == ScheduledRunStatus::Failed),
            ..task
        },
    )
}

/// Stores the work, its row and the task's next time.
fn launch(
    tx: &mut Tx<'_>,
    task: ScheduledTask,
    claim: &ScheduledClaim,
    owner: &str,
) -> Result<Option<InboxItemId>> {
    let is_due = claim.cause == ScheduledCause::Scheduled;
    let (run, item) = match &claim.work {
        ScheduledWork::Thread { run, .. } => {
            record(tx, claim, ScheduledRunStatus::Running, None)?;
            records::accept(tx, run, owner)?;
            (Some(run), None)
        }
        ScheduledWork::Chat(event) => {
            record(tx, claim, ScheduledRunStatus::Queued, None)?;
            (None, inserted(inbox::insert(tx, event)?))
        }
        ScheduledWork::Impossible(_) => (None, None),
    };
    let is_only = is_due && task.kind == ScheduleKind::Once;
    update(
        tx,
        &ScheduledTask {
            status: if is_only { ScheduledTaskStatus::Running } else { task.status },
            next_run: if is_due { claim.next } else { task.next_run },
            last_run: Some(claim.now),
            last_run_id: run.map(|run| run.id.to_string()).or(task.last_run_id),
            last_thread: run.map(|run| run.folder.thread.clone()).or(task.last_thread),
            run_count: task.run_count + 1,
            ..task
        },
    )?;
    Ok(item)
}

fn record(
    tx: &mut Tx<'_>,
    claim: &ScheduledClaim,
    status: ScheduledRunStatus,
    error: Option<&str>,
) -> Result<()> {
    let run = match &claim.work {
        ScheduledWork::Thread { run, .. } if error.is_none() => Some(run),
        _ => None,
    };
    let (started, finished) = (run.map(|_| claim.now), error.map(|_| claim.now));
    let sql = "INSERT INTO scheduled_task_runs
        (id, task, thread, run, scheduled_for, cause, status, error, started, finished, created)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let insert = query(sql).bind(&claim.id).bind(&claim.task);
    let insert = insert.bind(run.map(|run| run.folder.thread.as_str())).bind(run.map(|run| run.id.as_str()));
    let insert = insert.bind(claim.scheduled_for).bind(claim.cause.as_str()).bind(status.as_str());
    insert.bind(error).bind(started).bind(finished).bind(claim.now).execute(tx).map(drop)
}
