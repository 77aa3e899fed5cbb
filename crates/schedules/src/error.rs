//! Why a schedule or a change of a task is refused.

use crate::CronError;

/// Why a schedule or a change of a task is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The time zone is unknown.
    #[error("Unknown timezone: {0}")]
    Zone(String),
    /// The cron expression cannot be used.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// A field of the schedule is missing or has the wrong type.
    #[error("{0}")]
    Field(&'static str),
    /// The only time is past.
    #[error("once schedule must be in the future")]
    Past,
    /// The only time is too soon.
    #[error("once schedule must be at least {0} seconds in the future")]
    TooSoon(u64),
    /// A text is empty.
    #[error("`{0}` must not be empty")]
    Empty(&'static str),
    /// A text is too long.
    #[error("`{0}` must have at most {1} characters")]
    TooLong(&'static str, usize),
    /// The budget is not a number of tokens.
    #[error("`budget` must be a number of tokens from 1 to {0}")]
    Budget(i64),
    /// A thread is required.
    #[error("reuse_thread requires thread_id")]
    NoThread,
    /// The only run of the task works at the moment.
    #[error("Scheduled task is currently running; retry after the active execution finishes")]
    Running,
    /// The task has ended.
    #[error("Scheduled task has ended; set a new time to run it again")]
    Ended,
}

impl ScheduleError {
    /// Returns whether the state of the task is the cause, and not the request.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Running | Self::Ended)
    }
}
