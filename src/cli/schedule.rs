//! `pudu schedule`: lists, creates and changes the scheduled tasks of this machine's user.

use super::remote::ApiRequest;
use anyhow::Result;
use clap::{Args, Subcommand};
use pudu_base::foreign;
use pudu_config::Start;
use pudu_net::reqwest::Method;
use serde_json::{Value, json};

/// Name of the resource in the API.
const TASKS: &str = "scheduled-tasks";
/// Maximum length of a text in a list, in characters.
const MAX_TEXT_CHARS: usize = 60;

#[derive(Debug, Subcommand)]
pub(super) enum ScheduleVerb {
    /// List your scheduled tasks.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Schedule a prompt, once or on a cron schedule.
    Add(ScheduleArgs),
    /// Pause a task.
    Pause {
        /// ID of the task, from the list.
        task: String,
    },
    /// Resume a paused task.
    Resume {
        /// ID of the task, from the list.
        task: String,
    },
    /// Start a task now, in the running daemon.
    Run {
        /// ID of the task, from the list.
        task: String,
    },
    /// Delete a task. Its runs and threads are kept.
    Delete {
        /// ID of the task, from the list.
        task: String,
    },
    /// List the runs of a task.
    Runs {
        /// ID of the task, from the list.
        task: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// A task to create.
#[derive(Debug, Args)]
pub(super) struct ScheduleArgs {
    /// A short title.
    title: String,
    /// The message for the agent.
    prompt: String,
    /// A cron expression with five fields, such as "0 9 * * 1-5".
    #[arg(long, required_unless_present = "at", conflicts_with = "at")]
    cron: Option<String>,
    /// A single time, such as 2026-11-27T15:00.
    #[arg(long)]
    at: Option<String>,
    /// IANA name of the time zone (default: this machine's).
    #[arg(long)]
    timezone: Option<String>,
    /// Thread that all runs use (default: a new thread for each run).
    #[arg(long)]
    thread: Option<String>,
    /// Name of the agent.
    #[arg(long)]
    agent: Option<String>,
    /// Name of the model.
    #[arg(long)]
    model: Option<String>,
    /// Maximum number of tokens of a run.
    #[arg(long)]
    budget: Option<u64>,
}

impl ScheduleArgs {
    fn body(&self) -> Value {
        let (kind, spec) = match &self.cron {
            Some(cron) => ("cron", json!({ "cron": cron })),
            None => ("once", json!({ "run_at": self.at })),
        };
        let mode = if self.thread.is_some() { "reuse_thread" } else { "fresh_thread_per_run" };
        let zone = self.timezone.clone().unwrap_or_else(pudu_kit::clock::system_zone);
        json!({
            "title": self.title, "prompt": self.prompt, "schedule_type": kind, "schedule_spec": spec,
            "timezone": zone, "context_mode": mode, "thread_id": self.thread, "agent": self.agent,
            "model": self.model, "budget": self.budget,
        })
    }
}

/// Runs `pudu schedule`.
pub(super) async fn schedule(start: &Start, verb: &ScheduleVerb) -> Result<String> {
    let change = async |task: &str, step: &str| {
        ApiRequest::change(Method::POST, &[TASKS, task, step]).send(start).await
    };
    Ok(match verb {
        ScheduleVerb::List { json } => {
            let tasks = ApiRequest::get(&[TASKS]).send(start).await?;
            if *json { serde_json::to_string_pretty(&tasks)? } else { render_tasks(&tasks) }
        }
        ScheduleVerb::Add(task) => {
            let created = ApiRequest::change(Method::POST, &[TASKS]).body(task.body()).send(start).await?;
            let notice = created["notice"].as_str().map(|notice| format!("\n{notice}")).unwrap_or_default();
            format!("Scheduled {}; next: {}.{notice}", text(&created["id"]), time(&created["next_run_at"]))
        }
        ScheduleVerb::Pause { task } => {
            change(task, "pause").await?;
            format!("Paused {task}.")
        }
        ScheduleVerb::Resume { task } => {
            let resumed = change(task, "resume").await?;
            format!("Resumed {task}; next: {}.", time(&resumed["next_run_at"]))
        }
        ScheduleVerb::Run { task } => {
            ApiRequest::change(Method::POST, &[TASKS, task, "trigger"]).send_to_daemon(start).await?;
            format!("Started {task}.")
        }
        ScheduleVerb::Delete { task } => {
            ApiRequest::change(Method::DELETE, &[TASKS, task]).send(start).await?;
            format!("Deleted {task}.")
        }
        ScheduleVerb::Runs { task, json } => {
            let runs = ApiRequest::get(&[TASKS, task, "runs"]).send(start).await?;
            if *json { serde_json::to_string_pretty(&runs)? } else { history(&runs) }
        }
    })
}

fn text(value: &Value) -> String {
    foreign::line(value.as_str().unwrap_or("-"), MAX_TEXT_CHARS)
}

/// Renders a time of the API, which is in UTC, to the minute.
fn time(value: &Value) -> String {
    let minute = value.as_str().and_then(|time| time.get(..16));
    minute.map_or_else(|| "-".to_owned(), |minute| format!("{} UTC", minute.replace('T', " ")))
}

fn render_tasks(tasks: &Value) -> String {
    let tasks = tasks.as_array().map(Vec::as_slice).unwrap_or_default();
    if tasks.is_empty() {
        return "There are no scheduled tasks.".to_owned();
    }
    let line = |task: &Value| {
        let spec = &task["schedule_spec"];
        let times = text(if spec["cron"].is_string() { &spec["cron"] } else { &spec["run_at"] });
        let [id, status, zone, title] = ["id", "status", "timezone", "title"].map(|key| text(&task[key]));
        let next = time(&task["next_run_at"]);
        format!("{id}  {status}  {times} {zone}  next: {next}  {title}")
    };
    tasks.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn history(runs: &Value) -> String {
    let runs = runs.as_array().map(Vec::as_slice).unwrap_or_default();
    if runs.is_empty() {
        return "The task has not run yet.".to_owned();
    }
    let line = |run: &Value| {
        let [status, cause, thread] = ["status", "trigger", "thread_id"].map(|key| text(&run[key]));
        let time = time(&run["scheduled_for"]);
        let error = run["error"].as_str().map(|_| format!("  {}", text(&run["error"]))).unwrap_or_default();
        format!("{time}  {status}  {cause}  thread {thread}{error}")
    };
    runs.iter().map(line).collect::<Vec<_>>().join("\n")
}
