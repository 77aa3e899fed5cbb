//! Requests to create and change scheduled tasks.

use crate::{
    ApiError, Caller, GatewayState,
    runs::request::known_agent,
    threads::{owned, thread},
};
use pudu_base::ThreadId;
use pudu_schedules::{ScheduleError, TaskDraft, TaskEdit};
use pudu_store::{ScheduleKind, ScheduledChat};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Kind of the times of a new task.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScheduleType {
    Once,
    Cron,
}

/// Which thread the runs of a task use.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ContextMode {
    #[default]
    FreshThreadPerRun,
    ReuseThread,
}

/// A task to create.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NewTaskBody {
    title: String,
    /// The message for the agent.
    prompt: String,
    schedule_type: ScheduleType,
    /// `{"cron": "0 9 * * 1-5"}`, or `{"run_at": "2026-11-27T15:00"}`.
    schedule_spec: Value,
    /// IANA name of a time zone; UTC if it is missing.
    timezone: Option<String>,
    #[serde(default)]
    context_mode: ContextMode,
    /// The thread of every run, with `reuse_thread`.
    thread_id: Option<String>,
    /// Name of an agent.
    agent: Option<String>,
    /// Name of a model.
    model: Option<String>,
    /// Maximum number of tokens of a run.
    budget: Option<i64>,
    /// The chat that gets the answers.
    target: Option<TargetBody>,
}

/// The chat of a task.
#[derive(Deserialize, JsonSchema)]
struct TargetBody {
    /// A thread of a chat in which the caller wrote to the bot within the last week.
    thread_id: String,
}

/// A change of a task. Null and missing keys change nothing.
#[derive(Deserialize, JsonSchema)]
pub(super) struct TaskEditBody {
    title: Option<String>,
    /// The message for the agent.
    prompt: Option<String>,
    /// New times, of the same type.
    schedule_spec: Option<Value>,
    timezone: Option<String>,
    context_mode: Option<ContextMode>,
    thread_id: Option<String>,
    /// Name of an agent; an empty one means the default.
    agent: Option<String>,
    /// Name of a model; an empty one means the default.
    model: Option<String>,
    /// Maximum number of tokens of a run; 0 means no limit.
    budget: Option<i64>,
}

impl NewTaskBody {
    /// Checks everything that the body names, and returns the draft of the task.
    pub(super) async fn read(self, gateway: &GatewayState, caller: &Caller) -> Result<TaskDraft, ApiError> {
        check_names(gateway, caller, self.agent.as_deref(), self.model.as_deref()).await?;
        let thread = match self.context_mode {
            ContextMode::FreshThreadPerRun => None,
            ContextMode::ReuseThread => Some(own_thread(gateway, caller, self.thread_id.as_deref()).await?),
        };
        let chat = match &self.target {
            None => None,
            Some(target) => Some(chat(gateway, caller, target).await?),
        };
        Ok(TaskDraft {
            user: caller.user.clone(),
            title: self.title,
            prompt: self.prompt,
            kind: match self.schedule_type {
                ScheduleType::Once => ScheduleKind::Once,
                ScheduleType::Cron => ScheduleKind::Cron,
            },
            spec: self.schedule_spec,
            zone: self.timezone.unwrap_or_else(|| "UTC".to_owned()),
            thread,
            agent: self.agent,
            model: self.model,
            budget: self.budget,
            chat,
        })
    }
}

impl TaskEditBody {
    /// Checks everything that the body names, and returns the change.
    pub(super) async fn read(self, gateway: &GatewayState, caller: &Caller) -> Result<TaskEdit, ApiError> {
        check_names(gateway, caller, self.agent.as_deref(), self.model.as_deref()).await?;
        let thread = match (self.context_mode, &self.thread_id) {
            (Some(ContextMode::FreshThreadPerRun), _) => Some(None),
            (None, None) => None,
            (_, named) => Some(Some(own_thread(gateway, caller, named.as_deref()).await?)),
        };
        Ok(TaskEdit {
            title: self.title,
            prompt: self.prompt,
            spec: self.schedule_spec,
            zone: self.timezone,
            thread,
            agent: self.agent,
            model: self.model,
            budget: self.budget,
        })
    }
}

async fn own_thread(
    gateway: &GatewayState,
    caller: &Caller,
    named: Option<&str>,
) -> Result<ThreadId, ApiError> {
    let named = named.ok_or_else(|| ApiError::invalid(ScheduleError::NoThread.to_string()))?;
    let id = thread::id(named)?;
    match owned::own(gateway, caller, &id).await {
        Ok(found) => Ok(found.id),
        Err(_) => Err(ApiError::not_found("Thread not found")),
    }
}

/// Finds the chat of a thread in which the caller wrote to the bot.
async fn chat(
    gateway: &GatewayState,
    caller: &Caller,
    target: &TargetBody,
) -> Result<ScheduledChat, ApiError> {
    let id = thread::id(&target.thread_id)?;
    let found = gateway.0.shared.scheduled_chat(&id, &caller.user).await?;
    found.ok_or_else(|| ApiError::not_found("there is no chat of this thread in which you wrote to the bot"))
}

async fn check_names(
    gateway: &GatewayState,
    caller: &Caller,
    agent: Option<&str>,
    model: Option<&str>,
) -> Result<(), ApiError> {
    if let Some(name) = agent.filter(|name| !name.is_empty()) {
        known_agent(gateway.agent(), name, &caller.user).await?;
    }
    let models = gateway.agent().models();
    match model.filter(|name| !name.is_empty() && !models.iter().any(|model| model.name == *name)) {
        Some(unknown) => Err(ApiError::bad_request(format!("there is no model `{unknown}`"))),
        None => Ok(()),
    }
}
