//! The planner: it sleeps until the next due time, and starts each due time once.
//!
//! A due time that passed while no planner ran starts late, and further missed times of the same task are not made up
//! for. So after a break each task runs at most once.

use crate::{Schedule, task::hex_id};
use pudu_base::BoxFuture;
use pudu_kit::clock;
use pudu_store::{Db, ScheduleKind, ScheduledCause, ScheduledStart, ScheduledTask, StoreError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Maximum number of due tasks that are read at once.
const BATCH: i64 = 64;
/// Time until a task whose schedule can no longer be read is due again, in milliseconds.
const UNREADABLE_RETRY: i64 = 24 * 60 * 60 * 1000;

/// Settings of the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannerSettings {
    /// Whether due times start.
    pub(crate) enabled: bool,
    /// Maximum time between two looks at the store.
    pub(crate) poll_interval: Duration,
    /// Maximum number of active runs of all tasks.
    pub(crate) max_active: u32,
    /// Number of failed runs in a row after which a task is paused.
    pub(crate) max_failures: u32,
}

/// A start of a task's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStart {
    /// Id of the run of the task.
    pub id: String,
    /// Its cause.
    pub cause: ScheduledCause,
    /// The planned time, or the current time for a start by hand, in milliseconds since 1970.
    pub scheduled_for: i64,
    /// The task's next time.
    pub next: Option<i64>,
    /// Why the work cannot start, if it is known.
    pub problem: Option<String>,
    /// Maximum number of active runs of all tasks.
    pub max_active: u32,
    /// The current time.
    pub now: i64,
}

/// Starts the work of tasks.
pub trait Launcher: Send + Sync {
    /// Stores the work of a task and its start in one transaction, and begins with it.
    fn launch<'a>(
        &'a self,
        task: &'a ScheduledTask,
        start: TaskStart,
    ) -> BoxFuture<'a, Result<ScheduledStart, StoreError>>;

    /// Pauses a task that keeps failing, and notifies its owner.
    fn give_up<'a>(
        &'a self,
        task: &'a ScheduledTask,
        max_failures: u32,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Starts due tasks until `stop`. `changed` wakes the planner when tasks were created or changed.
pub(crate) async fn plan(
    db: &Db,
    launcher: &dyn Launcher,
    settings: impl Fn() -> PlannerSettings,
    changed: &Notify,
    stop: CancellationToken,
) {
    loop {
        let settings = settings();
        let wait = match settings.enabled {
            true => start_due(db, launcher, settings).await,
            false => settings.poll_interval,
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Starts all due tasks, and returns the time until the next look at the store.
async fn start_due(db: &Db, launcher: &dyn Launcher, settings: PlannerSettings) -> Duration {
    let worked = async {
        for task in db.failing_scheduled(i64::from(settings.max_failures)).await? {
            tracing::warn!(
                task = task.id,
                failures = task.failures,
                "paused scheduled task that keeps failing"
            );
            launcher.give_up(&task, settings.max_failures).await?;
        }
        while start_batch(db, launcher, settings).await? {}
        db.next_scheduled().await
    };
    match worked.await {
        Ok(Some(next)) => {
            let left = next.saturating_sub(clock::now());
            // A due time that could not start waits for the end of another run.
            let left =
                if left <= 0 { settings.poll_interval } else { Duration::from_millis(left.unsigned_abs()) };
            left.min(settings.poll_interval)
        }
        Ok(None) => settings.poll_interval,
        Err(error) => {
            tracing::error!(%error, "failed to start scheduled tasks");
            settings.poll_interval
        }
    }
}

/// Starts some due tasks. Returns whether more may be due.
async fn start_batch(
    db: &Db,
    launcher: &dyn Launcher,
    settings: PlannerSettings,
) -> Result<bool, StoreError> {
    let due = db.due_scheduled(clock::now(), BATCH).await?;
    for task in &due {
        let start = due_start(task, settings.max_active, clock::now());
        let started = launcher.launch(task, start).await?;
        tracing::info!(task = task.id, ?started, "scheduled task was due");
        if started == ScheduledStart::Full {
            return Ok(false);
        }
    }
    Ok(!due.is_empty())
}

/// Returns the start of a due task.
fn due_start(task: &ScheduledTask, max_active: u32, now: i64) -> TaskStart {
    let scheduled_for = task.next_run.unwrap_or(now);
    let (next, problem) = match Schedule::of_task(task) {
        _ if task.kind == ScheduleKind::Once => (None, None),
        Ok(schedule) => (schedule.next_after(now.max(scheduled_for)), None),
        Err(error) => (Some(now.saturating_add(UNREADABLE_RETRY)), Some(error.to_string())),
    };
    TaskStart {
        id: run_id(),
        cause: ScheduledCause::Scheduled,
        scheduled_for,
        next,
        problem,
        max_active,
        now,
    }
}

/// Starts a task by hand. Its schedule does not change.
///
/// # Errors
/// If the store fails.
pub(crate) async fn start_now(
    launcher: &dyn Launcher,
    task: &ScheduledTask,
    max_active: u32,
) -> Result<ScheduledStart, StoreError> {
    let (now, cause) = (clock::now(), ScheduledCause::Manual);
    let start =
        TaskStart { id: run_id(), cause, scheduled_for: now, next: None, problem: None, max_active, now };
    launcher.launch(task, start).await
}

fn run_id() -> String {
    format!("task-run-{}", hex_id())
}

#[cfg(test)]
mod tests;
