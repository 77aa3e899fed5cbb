//! Scheduled tasks and their runs as clients see them. Shapes are DeerFlow's, with further keys of pudu.

use pudu_langgraph::clock::iso;
use pudu_store::{ScheduledRun, ScheduledTask};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Note on a task that will not start because the scheduler is off.
const DISABLED: &str =
    "the scheduler is off: set `scheduler.enabled: true` in config.yaml, or start the task by hand";

/// A scheduled task.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ScheduledTask")]
pub(super) struct TaskAnswer {
    id: String,
    user_id: String,
    thread_id: Option<String>,
    context_mode: &'static str,
    assistant_id: String,
    title: String,
    prompt: String,
    schedule_type: &'static str,
    schedule_spec: Value,
    timezone: String,
    status: &'static str,
    /// Effect of a due time while the task works: `skip`.
    overlap_policy: &'static str,
    next_run_at: Option<String>,
    last_run_at: Option<String>,
    last_run_id: Option<String>,
    last_thread_id: Option<String>,
    last_error: Option<String>,
    /// Always null: a claim is one transaction.
    lease_owner: Option<String>,
    /// Always null: a claim is one transaction.
    lease_expires_at: Option<String>,
    run_count: i64,
    created_at: String,
    updated_at: String,
    /// The agent, if it is not the default.
    agent: Option<String>,
    /// The model, if it is not the default.
    model: Option<String>,
    /// Maximum number of tokens of a run.
    budget: Option<i64>,
    /// The chat that gets the answers.
    target: Option<TargetAnswer>,
    /// Number of failed runs since the last success.
    failures: i64,
    /// Why the task will not start at its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<&'static str>,
}

/// The chat of a scheduled task.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ScheduledTarget")]
struct TargetAnswer {
    /// The bot.
    account: String,
    /// The chat on the bot's platform.
    chat: String,
}

impl TaskAnswer {
    /// Renders a task. `enabled` is whether due times start.
    pub(super) fn new(task: ScheduledTask, enabled: bool) -> Self {
        let time = |time: Option<i64>| time.map(iso);
        Self {
            context_mode: if task.thread.is_some() { "reuse_thread" } else { "fresh_thread_per_run" },
            id: task.id,
            user_id: task.user.to_string(),
            thread_id: task.thread.map(|thread| thread.to_string()),
            assistant_id: task.agent.clone().unwrap_or_else(|| "lead_agent".to_owned()),
            title: task.title,
            prompt: task.prompt,
            schedule_type: task.kind.as_str(),
            schedule_spec: serde_json::from_str(&task.spec).unwrap_or_default(),
            timezone: task.zone,
            status: task.status.as_str(),
            overlap_policy: "skip",
            next_run_at: time(task.next_run),
            last_run_at: time(task.last_run),
            last_run_id: task.last_run_id,
            last_thread_id: task.last_thread.map(|thread| thread.to_string()),
            last_error: task.last_error,
            lease_owner: None,
            lease_expires_at: None,
            run_count: task.run_count,
            created_at: iso(task.created),
            updated_at: iso(task.updated),
            agent: task.agent,
            model: task.model,
            budget: task.budget,
            target: task.chat.map(|chat| TargetAnswer { account: chat.account, chat: chat.chat }),
            failures: task.failures,
            notice: (!enabled).then_some(DISABLED),
        }
    }
}

/// A run of a scheduled task.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ScheduledTaskRun")]
pub(super) struct TaskRunAnswer {
    id: String,
    task_id: String,
    thread_id: Option<String>,
    run_id: Option<String>,
    /// The planned time.
    scheduled_for: String,
    trigger: &'static str,
    status: &'static str,
    error: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    created_at: String,
}

impl From<ScheduledRun> for TaskRunAnswer {
    fn from(run: ScheduledRun) -> Self {
        Self {
            id: run.id,
            task_id: run.task,
            thread_id: run.thread.map(|thread| thread.to_string()),
            run_id: run.run.map(|run| run.to_string()),
            scheduled_for: iso(run.scheduled_for),
            trigger: run.cause.as_str(),
            status: run.status.as_str(),
            error: run.error,
            started_at: run.started.map(iso),
            finished_at: run.finished.map(iso),
            created_at: iso(run.created),
        }
    }
}

/// Confirms a start.
#[derive(Serialize, JsonSchema)]
pub(super) struct TriggeredTask {
    pub(super) id: String,
    /// Always true.
    pub(super) triggered: bool,
}

/// Confirms a deletion.
#[derive(Serialize, JsonSchema)]
pub(super) struct DeletedTask {
    pub(super) id: String,
    /// Always true.
    pub(super) deleted: bool,
}
