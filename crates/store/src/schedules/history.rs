//! Runs of scheduled tasks: one row for each due time, and for each start by hand.

use super::named;
use crate::{
    Db, InboxItemId, Result, StoreError, TurnId, crash,
    engines::{Column, ColumnValue, Row, Tx, from_row, query},
    sweep::CHUNK,
};
use pudu_base::{Outcome, RunId, ThreadId};

named! {
    /// State of a run of a scheduled task.
    ScheduledRunStatus {
        /// Its message waits in the inbox.
        Queued "queued",
        /// It works, or waits for its place on the thread.
        Running "running",
        /// It ended with an answer.
        Success "success",
        /// It failed, or could not start.
        Failed "failed",
        /// It was not started, because the run before was still active.
        Skipped "skipped",
        /// A person stopped it.
        Interrupted "interrupted",
    }
}

named! {
    /// Cause of a run of a scheduled task.
    ScheduledCause {
        /// It was due.
        Scheduled "scheduled",
        /// A person started it.
        Manual "manual",
    }
}

/// A run of a scheduled task. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledRun {
    /// Its id.
    pub id: String,
    /// The task.
    pub task: String,
    /// The thread, once it is known.
    pub thread: Option<ThreadId>,
    /// The agent's run, once it exists.
    pub run: Option<RunId>,
    /// The planned time, or the time of the start by hand.
    pub scheduled_for: i64,
    /// Its cause.
    pub cause: ScheduledCause,
    /// Its state.
    pub status: ScheduledRunStatus,
    /// Why it failed or was skipped.
    pub error: Option<String>,
    /// Time of its start.
    pub started: Option<i64>,
    /// Time of its end.
    pub finished: Option<i64>,
    /// Time of the row's creation.
    pub created: i64,
}

from_row!(ScheduledRun {
    id,
    task,
    thread,
    run,
    scheduled_for,
    cause,
    status,
    error,
    started,
    finished,
    created,
});

/// The task of a run that ended, and whether the run was the task's only due time.
type EndedRun = (String, ScheduledCause);

impl Db {
    /// Returns the runs of a task, newest first.
    pub async fn scheduled_runs(&self, task: &str, limit: i64, offset: i64) -> Result<Vec<ScheduledRun>> {
        let sql = "SELECT id, task, thread, run, scheduled_for, cause, status, error, started, finished, created
            FROM scheduled_task_runs WHERE task = $1 ORDER BY created DESC, scheduled_for DESC, id LIMIT $2 OFFSET $3";
        self.all(query(sql).bind(task).bind(limit).bind(offset)).await
    }

    /// Ends a run whose message gets no answer, together with its event in the inbox.
    pub async fn refuse_scheduled(&self, run: &str, item: InboxItemId, error: &str, now: i64) -> Result<()> {
        let (run, error) = (run.to_owned(), error.to_owned());
        self.write(&crash::REFUSE_SCHEDULED, move |tx| {
            let sql = "UPDATE inbox SET done = $1, payload = '' WHERE id = $2 AND done IS NULL";
            query(sql).bind(now).bind(item).execute(tx)?;
            let sql = "UPDATE scheduled_task_runs SET status = 'failed', error = $1, finished = $2
                WHERE id = $3 AND status IN ('queued', 'running') RETURNING task, cause";
            let ended = query(sql).bind(&error).bind(now).bind(&run).fetch_all(tx)?;
            follow(tx, ended, ScheduledRunStatus::Failed, Some(&error))
        })
        .await
    }

    /// Deletes ended runs that are older than `before`, in milliseconds since 1970, and the runs of deleted tasks.
    pub async fn prune_scheduled_runs(&self, before: i64) -> Result<u64> {
        let sql = "DELETE FROM scheduled_task_runs WHERE id IN (SELECT id FROM scheduled_task_runs
            WHERE created < $1 AND status NOT IN ('queued', 'running') LIMIT $2)";
        self.execute(&crash::SWEEP, query(sql).bind(before).bind(CHUNK)).await
    }
}

/// Records that a turn answers the events of scheduled tasks. `events` is the number of all its events.
pub(crate) fn opened(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    run: Option<(&RunId, &ThreadId)>,
    events: usize,
    now: i64,
) -> Result<()> {
    let Some((run, thread)) = run else { return answered_without_run(tx, turn, events, now) };
    let sql = "UPDATE scheduled_task_runs SET status = 'running', run = $1, thread = $2, started = $3
        WHERE status = 'queued' AND id IN (SELECT event_key FROM inbox WHERE turn = $4) RETURNING task";
    let opened = query(sql).bind(run).bind(thread).bind(now).bind(turn);
    for task in opened.fetch_all::<String>(tx)? {
        let sql = "UPDATE scheduled_tasks SET last_run_id = $1, last_thread = $2 WHERE id = $3";
        query(sql).bind(run).bind(thread).bind(&task).execute(tx)?;
    }
    Ok(())
}

/// Ends the runs whose messages a turn answers without a run: the bot refused the message, or a command of a person, which
/// is another event of the turn, dropped all messages that waited.
fn answered_without_run(tx: &mut Tx<'_>, turn: &TurnId, events: usize, now: i64) -> Result<()> {
    let sql = "UPDATE scheduled_task_runs SET finished = $1
        WHERE status = 'queued' AND id IN (SELECT event_key FROM inbox WHERE turn = $2) RETURNING task, cause";
    let ended: Vec<EndedRun> = query(sql).bind(now).bind(turn).fetch_all(tx)?;
    if ended.is_empty() {
        return Ok(());
    }
    let (status, error) = match events > ended.len() {
        true => (ScheduledRunStatus::Interrupted, "the run was stopped before it began"),
        false => (ScheduledRunStatus::Failed, "the bot refused the message"),
    };
    let sql = "UPDATE scheduled_task_runs SET status = $1, error = $2
        WHERE status = 'queued' AND id IN (SELECT event_key FROM inbox WHERE turn = $3)";
    query(sql).bind(status.as_str()).bind(error).bind(turn).execute(tx)?;
    follow(tx, ended, status, Some(error))
}

/// Records the end of a run, if it belongs to a scheduled task.
pub(crate) fn ended(tx: &mut Tx<'_>, run: &RunId, outcome: &Outcome, now: i64) -> Result<()> {
    let (status, error) = match outcome {
        Outcome::Success => (ScheduledRunStatus::Success, None),
        Outcome::Stopped => (ScheduledRunStatus::Interrupted, Some("the run was stopped".to_owned())),
        Outcome::Timeout => (ScheduledRunStatus::Failed, Some("the run took too long".to_owned())),
        Outcome::Limit => (ScheduledRunStatus::Failed, Some("the run reached its limit of steps".to_owned())),
        Outcome::Error(failure) => (ScheduledRunStatus::Failed, Some(failure.hint.clone())),
    };
    let sql = "UPDATE scheduled_task_runs SET status = $1, error = $2, finished = $3
        WHERE run = $4 AND status IN ('queued', 'running') RETURNING task, cause";
    let update = query(sql).bind(status.as_str()).bind(error.as_deref()).bind(now).bind(run);
    let ended = update.fetch_all(tx)?;
    follow(tx, ended, status, error.as_deref())
}

/// Updates the tasks of runs that ended.
fn follow(
    tx: &mut Tx<'_>,
    ended: Vec<EndedRun>,
    status: ScheduledRunStatus,
    error: Option<&str>,
) -> Result<()> {
    let failures = match status {
        ScheduledRunStatus::Success => "0",
        ScheduledRunStatus::Failed => "failures + 1",
        _ => "failures",
    };
    let end = match status {
        ScheduledRunStatus::Success => "completed",
        ScheduledRunStatus::Interrupted => "cancelled",
        _ => "failed",
    };
    for (task, cause) in ended {
        let sql = format!("UPDATE scheduled_tasks SET last_error = $1, failures = {failures} WHERE id = $2");
        query(sql).bind(error).bind(&task).execute(tx)?;
        if cause == ScheduledCause::Scheduled {
            let sql = "UPDATE scheduled_tasks SET status = $1 WHERE id = $2 AND kind = 'once' AND status = 'running'";
            query(sql).bind(end).bind(&task).execute(tx)?;
        }
    }
    Ok(())
}
