//! `/schedule`: the sender's scheduled tasks. In a group, only the tasks of this chat are shown.

use super::{CommandAnswer, CommandContext, CommandSpec, mark, not_stored};
use crate::scheduled::ScheduleLauncher;
use pudu_channels::Inbound;
use pudu_schedules::{ScheduleError, TaskError, local_time};
use pudu_store::{ScheduleKind, ScheduledTask, ScheduledTaskStatus, StoreError};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "schedule",
    argument: Language::argument_schedule,
    about: Language::about_schedule,
    run: |context, argument| Box::pin(run(context, argument)),
};

/// Number of characters at the end of a task's id by which people name it.
const SHORT_ID: usize = 6;

async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let language = context.language();
    let tasks = match own_tasks(context).await {
        Ok(tasks) => tasks,
        Err(error) => return failure(language, error).into(),
    };
    let words = argument.unwrap_or_default();
    let (action, name) = words.split_once(char::is_whitespace).unwrap_or((&words, ""));
    let name = name.trim();
    if matches!(action, "" | "list") {
        return list(context, language, &tasks).into();
    }
    if !matches!(action, "pause" | "resume" | "run" | "delete") {
        return language.schedule_usage().into();
    }
    let Some(task) = named(&tasks, name) else {
        return language.schedule_unknown(name).into();
    };
    change(context, language, action, task).await.unwrap_or_else(|error| failure(language, error)).into()
}

/// Performs an action on a task, and returns the answer.
async fn change(
    context: &CommandContext<'_>,
    language: Language,
    action: &str,
    task: &ScheduledTask,
) -> Result<String, TaskError> {
    let (shared, user, id) = (&context.scope.shared, &task.user, task.id.as_str());
    Ok(match action {
        "pause" => {
            let task = shared.schedules.pause(user, id).await?;
            language.schedule_paused(task.title)
        }
        "resume" => {
            let task = shared.schedules.resume(user, id).await?;
            language.schedule_resumed(next(&task), task.title)
        }
        "run" => {
            let launcher = ScheduleLauncher::new(shared.clone());
            shared.schedules.trigger(&launcher, user, id).await?;
            language.schedule_started(&task.title)
        }
        _ => {
            shared.schedules.delete(user, id).await?;
            language.schedule_deleted(&task.title)
        }
    })
}

/// Returns the sender's tasks, newest first.
async fn own_tasks(context: &CommandContext<'_>) -> Result<Vec<ScheduledTask>, TaskError> {
    let (shared, inbound) = (&context.scope.shared, &context.inbound);
    let (account, person) = (&inbound.address.account, &inbound.sender.id);
    let own = shared.secrets_of(account, person);
    let mut tasks = shared.schedules.list(&shared.user(account, person)).await?;
    // Several people may share the local user.
    tasks.retain(|task| {
        let created_here = |task: &ScheduledTask| {
            task.chat.as_ref().is_some_and(|chat| (&chat.account, &chat.person) == (account, person))
        };
        (task.user == own || created_here(task)) && is_shown(inbound, task)
    });
    Ok(tasks)
}

/// Returns whether the chat of an event may see a task of the sender.
fn is_shown(inbound: &Inbound, task: &ScheduledTask) -> bool {
    let is_here = |task: &ScheduledTask| {
        let address = &inbound.address;
        task.chat
            .as_ref()
            .is_some_and(|chat| (&chat.account, &chat.chat) == (&address.account, &address.chat))
    };
    inbound.private || is_here(task)
}

fn short_id(task: &ScheduledTask) -> &str {
    task.id.get(task.id.len().saturating_sub(SHORT_ID)..).unwrap_or(&task.id)
}

/// Finds a task by its short id, its id or its title.
fn named<'a>(tasks: &'a [ScheduledTask], name: &str) -> Option<&'a ScheduledTask> {
    let is_named = |task: &&ScheduledTask| {
        short_id(task) == name || task.id == name || task.title.to_lowercase() == name.to_lowercase()
    };
    let mut found = tasks.iter().filter(is_named);
    let first = found.next();
    first.filter(|_| found.next().is_none())
}

/// Returns the next time of a task, on its own clock.
fn next(task: &ScheduledTask) -> String {
    task.next_run.map_or_else(|| "–".to_owned(), |time| local_time(time, &task.zone))
}

fn list(context: &CommandContext<'_>, language: Language, tasks: &[ScheduledTask]) -> String {
    if tasks.is_empty() {
        return language.schedules_none().to_owned();
    }
    let line = |task: &ScheduledTask| {
        let spec: serde_json::Value = serde_json::from_str(&task.spec).unwrap_or_default();
        let times = match task.kind {
            ScheduleKind::Cron => format!("`{}` {}", spec["cron"].as_str().unwrap_or_default(), task.zone),
            ScheduleKind::Once => spec["run_at"].as_str().unwrap_or_default().to_owned(),
        };
        let state = match task.status {
            ScheduledTaskStatus::Enabled => language.schedule_next(next(task)),
            ScheduledTaskStatus::Paused => language.schedule_is_paused().to_owned(),
            ScheduledTaskStatus::Running => language.schedule_is_running().to_owned(),
            _ => language.schedule_is_over().to_owned(),
        };
        let failed = mark(task.last_error.is_some(), "⚠️");
        format!("\n- `{}` **{}** — {times} — {state}{failed}", short_id(task), task.title)
    };
    let mut text = language.schedules().to_owned();
    text.extend(tasks.iter().map(line));
    if !context.scope.shared.schedules.rules().enabled {
        text.extend(["\n\n", language.schedule_off()]);
    }
    format!("{text}\n\n{}", language.schedule_usage())
}

fn failure(language: Language, error: TaskError) -> String {
    match error {
        TaskError::Refused(ScheduleError::Running) | TaskError::Active => language.schedule_busy().to_owned(),
        TaskError::Refused(ScheduleError::Ended) => language.schedule_ended().to_owned(),
        TaskError::Refused(ScheduleError::Past) => language.schedule_past().to_owned(),
        TaskError::Full => language.schedule_full().to_owned(),
        TaskError::Store(error) => not_stored(language, &error),
        error => not_stored(language, &StoreError::Unavailable(error.to_string())),
    }
}
