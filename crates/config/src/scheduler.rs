//! Scheduled tasks: whether they run, and their limits.

use super::{quantity::NumberUnit, reader::Section};
use std::time::Duration;

settings! {
    /// Limits of scheduled tasks.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SchedulerConfig(section) {
        /// Starts scheduled tasks at their times. Without it tasks can be created, and are started by hand only.
        enabled: bool = flag().or(false);
        /// Maximum time until a change of the clock or of the database by another program is noticed, in seconds. Due
        /// times do not wait for it.
        poll_interval as "poll_interval_seconds": Duration = span(NumberUnit::Seconds, 1..=300).or(Duration::from_secs(5));
        /// Maximum number of scheduled runs at once; further ones wait.
        max_concurrent_runs: u32 = number(1..=32).or(3);
        /// Minimum time until the only run of a new task, in seconds.
        min_once_delay as "min_once_delay_seconds": Duration = span(NumberUnit::Seconds, 1..=86_400).or(Duration::from_secs(60));
        /// Maximum number of tasks of a user.
        max_tasks_per_user: u32 = number(1..=10_000).or(100);
        /// Number of failed runs in a row after which a task is paused and its owner is notified.
        max_failures: u32 = number(1..=1_000).or(3);
        /// Maximum age of entries in the history of tasks, in days; 0 keeps them forever.
        history_max_age as "history_max_age_days": Duration = span(NumberUnit::Days, 0..=36_500).or(Duration::from_secs(90 * 24 * 60 * 60));
    }
}

pub(super) fn read(top: &Section<'_>) -> SchedulerConfig {
    let section = top.section("scheduler").about("Scheduled tasks: prompts that run at set times.");
    // A claim is one transaction, so it needs no lease, and one process works on a database.
    section.note_unused(&["multi_instance", "lease_seconds"]);
    SchedulerConfig::read(&section)
}
