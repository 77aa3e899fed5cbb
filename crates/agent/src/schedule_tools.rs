//! `schedule_task` and `scheduled_tasks`: the tools by which people schedule prompts by talking. A person confirms each new
//! task, and reads its next times before.

use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool, UserId, foreign};
use pudu_schedules::{Schedules, TaskDraft, local_time};
use pudu_store::{ScheduleKind, ScheduledChat, ScheduledTask};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Name of the tool that creates a task.
pub(crate) const SCHEDULE_TASK: &str = "schedule_task";
/// Number of times that a person reads before confirming.
const SHOWN_TIMES: usize = 3;

/// Where tasks of a run belong.
#[derive(Clone)]
pub(crate) struct TaskPlace {
    pub(crate) schedules: Arc<Schedules>,
    /// The owner.
    pub(crate) user: UserId,
    /// The chat that gets the answers.
    pub(crate) chat: Option<ScheduledChat>,
    /// Whether the chat is a group.
    pub(crate) room: bool,
    /// IANA name of the owner's time zone.
    pub(crate) zone: String,
}

impl TaskPlace {
    /// Returns the owner's tasks that the chat may see.
    async fn tasks(&self) -> Result<Vec<ScheduledTask>, ToolError> {
        let mut tasks =
            self.schedules.list(&self.user).await.map_err(|error| ToolError(error.to_string()))?;
        let person = |chat: &ScheduledChat| (chat.account.clone(), chat.person.clone());
        let here = |chat: &ScheduledChat| (chat.account.clone(), chat.chat.clone());
        if let Some(own) = &self.chat {
            // Several people may share the local user, and a group reads the answer.
            tasks.retain(|task| {
                let same = |chat: &ScheduledChat| {
                    person(chat) == person(own) && (!self.room || here(chat) == here(own))
                };
                task.chat.as_ref().is_some_and(same)
            });
        }
        Ok(tasks)
    }
}

/// Creates tasks.
pub(crate) struct ScheduleTask(pub(crate) TaskPlace);

/// A task to create.
#[derive(Clone, Deserialize, JsonSchema)]
pub(crate) struct WantedTask {
    /// A short title for people.
    title: String,
    /// The message that you will get at each time. It has to be complete: you will not see this conversation.
    prompt: String,
    /// For repeated times: a cron expression with five fields, such as `0 9 * * 1-5`.
    #[serde(default)]
    cron: Option<String>,
    /// For one time: a local time such as `2026-11-27T15:00`.
    #[serde(default)]
    at: Option<String>,
    /// IANA name of the time zone, if it is not the person's own.
    #[serde(default)]
    timezone: Option<String>,
}

impl ScheduleTask {
    fn draft(&self, task: &WantedTask) -> Result<TaskDraft, ToolError> {
        let (kind, spec) = match (&task.cron, &task.at) {
            (Some(cron), None) => (ScheduleKind::Cron, json!({ "cron": cron })),
            (None, Some(at)) => (ScheduleKind::Once, json!({ "run_at": at })),
            _ => return Err(ToolError("give either `cron` or `at`".to_owned())),
        };
        let zone = task.timezone.clone().unwrap_or_else(|| self.0.zone.clone());
        Ok(TaskDraft {
            user: self.0.user.clone(),
            title: task.title.clone(),
            prompt: task.prompt.clone(),
            kind,
            spec,
            zone,
            thread: None,
            agent: None,
            model: None,
            budget: None,
            chat: self.0.chat.clone(),
        })
    }
}

impl TypedTool for ScheduleTask {
    type Args = WantedTask;
    const NAME: &'static str = SCHEDULE_TASK;
    const DESCRIPTION: &'static str = "Schedules a prompt: at each time you receive it as a new message, and your answer is posted \
         in this chat. Use it for reminders and repeated reports. A person confirms each call.";

    async fn examine(&self, args: WantedTask) -> Result<Option<String>, ToolError> {
        let draft = self.draft(&args)?;
        let times =
            self.0.schedules.preview(&draft, SHOWN_TIMES).map_err(|error| ToolError(error.to_string()))?;
        let times: Vec<String> = times.into_iter().map(|time| local_time(time, &draft.zone)).collect();
        Ok(Some(format!("{} — {}", foreign::line(&draft.zone, 64), times.join(", "))))
    }

    async fn run(&self, args: WantedTask, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let task = self.0.schedules.create(self.draft(&args)?).await;
        let task = task.map_err(|error| ToolError(error.to_string()))?;
        let next = task.next_run.map(|time| local_time(time, &task.zone)).unwrap_or_default();
        Ok(format!("Scheduled as {}. The first time is {next}.", task.id).into())
    }
}

/// Lists and deletes tasks.
pub(crate) struct ScheduledTasks(pub(crate) TaskPlace);

/// An action on tasks.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum TaskAction {
    /// Lists the person's scheduled tasks.
    List,
    /// Deletes a scheduled task.
    Cancel {
        /// The task's id, from the list.
        id: String,
    },
}

impl TypedTool for ScheduledTasks {
    type Args = TaskAction;
    const NAME: &'static str = "scheduled_tasks";
    const DESCRIPTION: &'static str =
        "Lists the scheduled tasks of the person that you work for, or deletes one of them.";

    async fn run(&self, args: TaskAction, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let tasks = self.0.tasks().await?;
        match args {
            TaskAction::List => {
                let tasks: Vec<Value> = tasks.iter().map(describe).collect();
                Ok(Value::Array(tasks).to_string().into())
            }
            TaskAction::Cancel { id } => {
                let task = tasks.iter().find(|task| task.id == id);
                let task =
                    task.ok_or_else(|| ToolError("there is no such task; list them first".to_owned()))?;
                let deleted = self.0.schedules.delete(&task.user, &task.id).await;
                deleted.map_err(|error| ToolError(error.to_string()))?;
                Ok(format!("Deleted “{}”.", task.title).into())
            }
        }
    }
}

fn describe(task: &ScheduledTask) -> Value {
    json!({
        "id": task.id, "title": task.title, "prompt": task.prompt, "timezone": task.zone,
        "schedule": serde_json::from_str::<Value>(&task.spec).unwrap_or_default(), "status": task.status.as_str(),
        "next": task.next_run.map(|time| local_time(time, &task.zone)), "last_error": task.last_error,
    })
}
