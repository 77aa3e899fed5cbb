//! Scheduled tasks: their times, their changes by people, and the planner that starts each due time once.
//!
//! Deliberately absent: HTTP, chats, and the work of a task, which a [`Launcher`] starts.

mod cron;
mod error;
mod planner;
mod schedule;
mod service;
mod task;

pub use cron::{CronError, CronExpression, find_zone};
pub use error::ScheduleError;
pub use planner::{Launcher, TaskStart};
use planner::{PlannerSettings, plan, start_now};
pub use schedule::{Schedule, local_time};
pub use service::{ScheduleRules, Schedules, TaskError};
use task::ScheduleLimits;
pub use task::{TaskDraft, TaskEdit};
