//! The tasks of users: list, create, change, delete and start.

use crate::{
    Launcher, PlannerSettings, Schedule, ScheduleError, ScheduleLimits, TaskDraft, TaskEdit, plan, start_now,
    task,
};
use pudu_base::UserId;
use pudu_kit::clock;
use pudu_store::{Db, ScheduledStart, ScheduledTask, StoreError};
use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Rules for scheduled tasks. A change takes effect with the next request, and at the planner's next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleRules {
    /// Whether due times start.
    pub enabled: bool,
    /// Maximum time between two looks of the planner at the store.
    pub poll_interval: Duration,
    /// Maximum number of active runs of all tasks.
    pub max_active: u32,
    /// Minimum time until the only run of a new task, in seconds.
    pub min_once_delay: u64,
    /// Maximum number of tasks of a user.
    pub max_tasks: u32,
    /// Number of failed runs in a row after which a task is paused.
    pub max_failures: u32,
}

impl Default for ScheduleRules {
    fn default() -> Self {
        Self {
            enabled: false,
            poll_interval: Duration::from_secs(5),
            max_active: 3,
            min_once_delay: 60,
            max_tasks: 100,
            max_failures: 3,
        }
    }
}

/// Why a request about a task fails.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The user has no such task.
    #[error("Scheduled task not found")]
    Missing,
    /// The request or the task's state does not allow it.
    #[error(transparent)]
    Refused(#[from] ScheduleError),
    /// The user has too many tasks.
    #[error("you have {0} scheduled tasks, which is the maximum; delete one first")]
    TooMany(u32),
    /// The task has an active run.
    #[error("task already has an active run")]
    Active,
    /// Too many tasks have an active run.
    #[error("global concurrent-run limit reached")]
    Full,
    /// The work could not start.
    #[error("{0}")]
    Failed(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The scheduled tasks of all users.
pub struct Schedules {
    db: Db,
    rules: RwLock<ScheduleRules>,
    /// Notified when tasks were created or changed.
    changed: Notify,
}

impl Schedules {
    /// Creates the service, with default rules.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db, rules: RwLock::default(), changed: Notify::new() }
    }

    /// Returns the current rules.
    #[must_use]
    pub fn rules(&self) -> ScheduleRules {
        *self.rules.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the rules.
    pub fn set_rules(&self, rules: ScheduleRules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        self.changed.notify_one();
    }

    fn limits(&self) -> ScheduleLimits {
        ScheduleLimits { min_once_delay: self.rules().min_once_delay, now: clock::now() }
    }

    /// Starts due tasks until `stop`.
    pub async fn plan(&self, launcher: &dyn Launcher, stop: CancellationToken) {
        let settings = || {
            let ScheduleRules { enabled, poll_interval, max_active, max_failures, .. } = self.rules();
            PlannerSettings { enabled, poll_interval, max_active, max_failures }
        };
        plan(&self.db, launcher, settings, &self.changed, stop).await;
    }

    /// Lists a user's tasks, newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list(&self, user: &UserId) -> Result<Vec<ScheduledTask>, TaskError> {
        Ok(self.db.scheduled_tasks(user).await?)
    }

    /// Finds a user's task.
    ///
    /// # Errors
    /// If the user has no such task, or the store fails.
    pub async fn find(&self, user: &UserId, id: &str) -> Result<ScheduledTask, TaskError> {
        let task = self.db.scheduled_task(id).await?;
        task.filter(|task| task.user == *user).ok_or(TaskError::Missing)
    }

    /// Creates a task.
    ///
    /// # Errors
    /// If the draft is refused, the user has too many tasks, or the store fails.
    pub async fn create(&self, draft: TaskDraft) -> Result<ScheduledTask, TaskError> {
        let task = draft.into_task(self.limits())?;
        let limit = self.rules().max_tasks;
        if !self.db.add_scheduled_task(task.clone(), i64::from(limit)).await? {
            return Err(TaskError::TooMany(limit));
        }
        self.changed.notify_one();
        Ok(task)
    }

    /// Returns the first times of a draft, at most `count`.
    ///
    /// # Errors
    /// If the draft is refused.
    pub fn preview(&self, draft: &TaskDraft, count: usize) -> Result<Vec<i64>, ScheduleError> {
        let task = draft.clone().into_task(self.limits())?;
        let schedule = Schedule::of_task(&task)?;
        Ok(std::iter::successors(task.next_run, |time| schedule.next_after(*time)).take(count).collect())
    }

    /// Changes a user's task.
    ///
    /// # Errors
    /// If the change is refused, the user has no such task, or the store fails.
    pub async fn edit(&self, user: &UserId, id: &str, edit: TaskEdit) -> Result<ScheduledTask, TaskError> {
        let limits = self.limits();
        self.change(user, id, move |task| edit.apply(task, limits)).await
    }

    /// Pauses a user's task.
    ///
    /// # Errors
    /// As [`Schedules::edit`].
    pub async fn pause(&self, user: &UserId, id: &str) -> Result<ScheduledTask, TaskError> {
        let now = clock::now();
        self.change(user, id, move |task| task::pause(task, now)).await
    }

    /// Resumes a user's task.
    ///
    /// # Errors
    /// As [`Schedules::edit`].
    pub async fn resume(&self, user: &UserId, id: &str) -> Result<ScheduledTask, TaskError> {
        let now = clock::now();
        self.change(user, id, move |task| task::resume(task, now)).await
    }

    async fn change(
        &self,
        user: &UserId,
        id: &str,
        change: impl Fn(&mut ScheduledTask) -> Result<(), ScheduleError> + Send + 'static,
    ) -> Result<ScheduledTask, TaskError> {
        self.find(user, id).await?;
        let changed = self.db.change_scheduled_task(id, change).await?.ok_or(TaskError::Missing)??;
        self.changed.notify_one();
        Ok(changed)
    }

    /// Deletes a user's task. A run in progress continues.
    ///
    /// # Errors
    /// If the user has no such task, or the store fails.
    pub async fn delete(&self, user: &UserId, id: &str) -> Result<(), TaskError> {
        self.find(user, id).await?;
        match self.db.delete_scheduled_task(id).await? {
            true => Ok(()),
            false => Err(TaskError::Missing),
        }
    }

    /// Starts a user's task now. Its schedule does not change.
    ///
    /// # Errors
    /// If the task or too many others work, the work cannot start, or the store fails.
    pub async fn trigger(&self, launcher: &dyn Launcher, user: &UserId, id: &str) -> Result<(), TaskError> {
        let task = self.find(user, id).await?;
        match start_now(launcher, &task, self.rules().max_active).await? {
            ScheduledStart::Started(_) => Ok(()),
            ScheduledStart::Active | ScheduledStart::Skipped => Err(TaskError::Active),
            ScheduledStart::Full => Err(TaskError::Full),
            ScheduledStart::Failed(reason) => Err(TaskError::Failed(reason)),
            ScheduledStart::Stale => Err(TaskError::Missing),
        }
    }
}
