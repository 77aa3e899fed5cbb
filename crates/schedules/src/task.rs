//! Creation and changes of tasks. Every change is computed from the stored task within one transaction.

use crate::{Schedule, ScheduleError};
use pudu_base::{MessageId, ThreadId, UserId};
use pudu_store::{ScheduleKind, ScheduledChat, ScheduledTask, ScheduledTaskStatus};
use serde_json::Value;

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 255;
/// Maximum length of a prompt, in characters.
const MAX_PROMPT_CHARS: usize = 50_000;
/// Maximum length of the name of an agent or a model, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Maximum budget of a run, in tokens.
const MAX_BUDGET: i64 = 1_000_000_000;

/// Limits of new tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleLimits {
    /// Minimum time until an only run, in seconds.
    pub min_once_delay: u64,
    /// The current time, in milliseconds since 1970.
    pub now: i64,
}

impl ScheduleLimits {
    /// Returns the first due time of a schedule.
    fn first_time(&self, kind: ScheduleKind, schedule: &Schedule) -> Result<Option<i64>, ScheduleError> {
        let next = schedule.next_after(self.now);
        if kind == ScheduleKind::Once {
            let next = next.ok_or(ScheduleError::Past)?;
            let delay = i64::try_from(self.min_once_delay).unwrap_or(i64::MAX).saturating_mul(1000);
            if next < self.now.saturating_add(delay) {
                return Err(ScheduleError::TooSoon(self.min_once_delay));
            }
        }
        Ok(next)
    }
}

/// A task that a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDraft {
    /// The owner.
    pub user: UserId,
    /// The title.
    pub title: String,
    /// The message for the agent.
    pub prompt: String,
    /// Kind of its times.
    pub kind: ScheduleKind,
    /// Its times, in DeerFlow's form.
    pub spec: Value,
    /// IANA name of the time zone.
    pub zone: String,
    /// The thread of every run; without one, each run gets a new thread.
    pub thread: Option<ThreadId>,
    /// The agent, if it is not the default.
    pub agent: Option<String>,
    /// The model, if it is not the default.
    pub model: Option<String>,
    /// Maximum number of tokens of a run.
    pub budget: Option<i64>,
    /// The chat that gets the answers.
    pub chat: Option<ScheduledChat>,
}

impl TaskDraft {
    /// Creates the task.
    ///
    /// # Errors
    /// If a text or the schedule is refused.
    pub fn into_task(self, limits: ScheduleLimits) -> Result<ScheduledTask, ScheduleError> {
        let schedule = Schedule::parse(self.kind, &self.spec, &self.zone)?;
        let next_run = limits.first_time(self.kind, &schedule)?;
        Ok(ScheduledTask {
            id: format!("task-{}", hex_id()),
            user: self.user,
            thread: self.thread,
            title: text("title", &self.title, MAX_TITLE_CHARS)?,
            prompt: text("prompt", &self.prompt, MAX_PROMPT_CHARS)?,
            kind: self.kind,
            spec: Schedule::to_spec(self.kind, &self.spec),
            zone: self.zone,
            status: ScheduledTaskStatus::Enabled,
            agent: name("agent", self.agent)?,
            model: name("model", self.model)?,
            budget: budget(self.budget)?,
            chat: self.chat,
            next_run,
            last_run: None,
            last_run_id: None,
            last_thread: None,
            last_error: None,
            run_count: 0,
            failures: 0,
            created: limits.now,
            updated: limits.now,
        })
    }
}

/// A change of a task. A field without a value stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEdit {
    /// The title.
    pub title: Option<String>,
    /// The message for the agent.
    pub prompt: Option<String>,
    /// The times.
    pub spec: Option<Value>,
    /// The time zone.
    pub zone: Option<String>,
    /// The thread; `Some(None)` gives each run a new thread.
    pub thread: Option<Option<ThreadId>>,
    /// The agent; an empty name means the default.
    pub agent: Option<String>,
    /// The model; an empty name means the default.
    pub model: Option<String>,
    /// The budget; 0 means no limit.
    pub budget: Option<i64>,
}

impl TaskEdit {
    /// Applies the change. New times of a task that has ended enable it again.
    ///
    /// # Errors
    /// If a value is refused, or the task's only run works.
    pub fn apply(&self, task: &mut ScheduledTask, limits: ScheduleLimits) -> Result<(), ScheduleError> {
        check_idle(task)?;
        if let Some(title) = &self.title {
            task.title = text("title", title, MAX_TITLE_CHARS)?;
        }
        if let Some(prompt) = &self.prompt {
            task.prompt = text("prompt", prompt, MAX_PROMPT_CHARS)?;
        }
        if let Some(thread) = &self.thread {
            task.thread.clone_from(thread);
        }
        if let Some(agent) = &self.agent {
            task.agent = name("agent", Some(agent.clone()))?;
        }
        if let Some(model) = &self.model {
            task.model = name("model", Some(model.clone()))?;
        }
        if let Some(tokens) = self.budget {
            task.budget = budget(Some(tokens).filter(|tokens| *tokens != 0))?;
        }
        if self.spec.is_some() || self.zone.is_some() {
            self.reschedule(task, limits)?;
        }
        task.updated = limits.now;
        Ok(())
    }

    fn reschedule(&self, task: &mut ScheduledTask, limits: ScheduleLimits) -> Result<(), ScheduleError> {
        let stored = || serde_json::from_str(&task.spec).unwrap_or_default();
        let spec = self.spec.clone().unwrap_or_else(stored);
        let zone = self.zone.as_ref().unwrap_or(&task.zone).clone();
        let schedule = Schedule::parse(task.kind, &spec, &zone)?;
        task.next_run = limits.first_time(task.kind, &schedule)?;
        task.spec = Schedule::to_spec(task.kind, &spec);
        task.zone = zone;
        if task.status != ScheduledTaskStatus::Paused {
            task.status = ScheduledTaskStatus::Enabled;
        }
        Ok(())
    }
}

/// Pauses a task.
///
/// # Errors
/// If its only run works, or it has ended.
pub(crate) fn pause(task: &mut ScheduledTask, now: i64) -> Result<(), ScheduleError> {
    check_alive(task)?;
    (task.status, task.updated) = (ScheduledTaskStatus::Paused, now);
    Ok(())
}

/// Resumes a paused task with its next time from now on. Times during the pause are not made up for.
///
/// # Errors
/// If its only run works, it has ended, or its only time is past.
pub(crate) fn resume(task: &mut ScheduledTask, now: i64) -> Result<(), ScheduleError> {
    check_alive(task)?;
    if task.status == ScheduledTaskStatus::Paused {
        let next = Schedule::of_task(task)?.next_after(now);
        if next.is_none() && task.kind == ScheduleKind::Once {
            return Err(ScheduleError::Past);
        }
        (task.next_run, task.failures, task.updated) = (next, 0, now);
    }
    task.status = ScheduledTaskStatus::Enabled;
    Ok(())
}

fn check_idle(task: &ScheduledTask) -> Result<(), ScheduleError> {
    match task.status {
        ScheduledTaskStatus::Running => Err(ScheduleError::Running),
        _ => Ok(()),
    }
}

fn check_alive(task: &ScheduledTask) -> Result<(), ScheduleError> {
    check_idle(task)?;
    match task.status {
        ScheduledTaskStatus::Enabled | ScheduledTaskStatus::Paused => Ok(()),
        _ => Err(ScheduleError::Ended),
    }
}

/// Checks a text. NUL, which PostgreSQL cannot store, is replaced.
fn text(field: &'static str, text: &str, most: usize) -> Result<String, ScheduleError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ScheduleError::Empty(field));
    }
    match text.chars().count() > most {
        true => Err(ScheduleError::TooLong(field, most)),
        false => Ok(text.replace('\0', "\u{fffd}")),
    }
}

fn name(field: &'static str, name: Option<String>) -> Result<Option<String>, ScheduleError> {
    let name = name.filter(|name| !name.trim().is_empty());
    name.map(|name| text(field, &name, MAX_NAME_CHARS)).transpose()
}

fn budget(tokens: Option<i64>) -> Result<Option<i64>, ScheduleError> {
    match tokens {
        Some(tokens) if !(1..=MAX_BUDGET).contains(&tokens) => Err(ScheduleError::Budget(MAX_BUDGET)),
        tokens => Ok(tokens),
    }
}

/// Returns a random id of 32 hexadecimal digits.
pub(crate) fn hex_id() -> String {
    MessageId::fresh().as_str().replace('-', "")
}

#[cfg(test)]
mod tests;
