//! Slash commands on a thread. The commands are those of chats.

use super::{
    GatewayState,
    caller::Caller,
    chat::preferred,
    errors::refuse,
    json::{BodyRejection, Json},
    options::NamedOptions,
    owned::own_if_there,
    refusal::{Refusal, answer, body, changed, refused, scrubbed},
    run_request::{self, Repetition},
    thread,
    thread_facts::summarize,
};
use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use pudu_channels::{Choice, FinalView, OutFile};
use pudu_client::{
    RunTask,
    base::{RunId, ThreadId},
};
use pudu_dispatch::{
    commands::{self, ThreadAnswer, ThreadCaller, ThreadChoices, ThreadReply},
    local,
};
use pudu_texts::Language;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a command, in bytes.
const MAX_COMMAND_BYTES: usize = 256 * 1024;

/// A command.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SlashCommandBody {
    /// The command with its slash, such as `/models gpt-5`.
    text: String,
    /// Options of the run that the command begins, as in a request for a run.
    #[serde(default)]
    context: Value,
}

/// Answer to a command.
#[derive(Serialize)]
struct SlashCommandAnswer {
    /// Thread on which the conversation continues: after `/new`, another one.
    thread_id: ThreadId,
    /// Whether the text is a message to the agent, to be sent by a run. The other fields are then empty.
    is_message: bool,
    /// Answer, as Markdown.
    text: String,
    /// Commands to offer as buttons.
    choices: Vec<CommandChoice>,
    /// Text files that belong to the answer.
    files: Vec<CommandFile>,
    /// Run that the command began.
    run_id: Option<RunId>,
    /// Stored choices for the runs of the thread, which hold unless a run names its own.
    settings: ThreadSettings,
}

/// Command to offer as a button.
#[derive(Serialize)]
struct CommandChoice {
    label: String,
    /// Text of the command.
    action: String,
}

/// Text file of an answer.
#[derive(Serialize)]
struct CommandFile {
    name: String,
    content: String,
}

/// Stored choices for the runs of a thread; null where the configuration decides.
#[derive(Serialize)]
struct ThreadSettings {
    model: Option<String>,
    /// `off`, `on`, `low`, `medium` or `high`.
    thinking: Option<String>,
    agent: Option<String>,
}

impl From<ThreadChoices> for ThreadSettings {
    fn from(ThreadChoices { model, thinking, agent, .. }: ThreadChoices) -> Self {
        Self { model, thinking: thinking.map(|thinking| thinking.name().to_owned()), agent }
    }
}

/// Runs a command on a thread.
pub(super) async fn run(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    posted: Result<Json<SlashCommandBody>, BodyRejection>,
) -> Response {
    answer(perform(&gateway, &caller, &id, &headers, posted).await)
}

async fn perform(
    gateway: &GatewayState,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    posted: Result<Json<SlashCommandBody>, BodyRejection>,
) -> Result<Response, Refusal> {
    let thread = thread::id(id)?;
    own_if_there(gateway, caller, &thread).await?;
    let SlashCommandBody { text, context } = body(posted)?;
    if text.len() > MAX_COMMAND_BYTES {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "`text` has more than 256 KiB");
    }
    let shared = &gateway.0.shared;
    let mut caller = thread_caller(gateway, caller, thread, preferred(headers))?;
    let ThreadReply { thread, answer } = commands::on_thread(shared, &caller, text.trim()).await;
    caller.thread = thread;
    let (mut view, mut run_id, is_message) =
        (FinalView::default(), None, matches!(answer, ThreadAnswer::Message));
    match answer {
        ThreadAnswer::View(shown) => view = *shown,
        ThreadAnswer::Message => {}
        ThreadAnswer::Retry => run_id = Some(repeat(gateway, &caller, &context).await?),
        ThreadAnswer::Compact => view.text = compact(gateway, &caller).await?,
    }
    let settings = commands::choices(shared, &caller).await.into();
    Ok(scrubbed(&SlashCommandAnswer {
        thread_id: caller.thread,
        is_message,
        text: view.text,
        choices: view.choices.into_iter().map(CommandChoice::from).collect(),
        files: files(view.files).await?,
        run_id,
        settings,
    }))
}

/// Returns the caller as commands see them.
pub(super) fn thread_caller(
    gateway: &GatewayState,
    caller: &Caller,
    thread: ThreadId,
    language: Option<Language>,
) -> Result<ThreadCaller, Refusal> {
    let shared = &gateway.0.shared;
    let Some(account) = shared.accounts.get(local::ACCOUNT) else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "the daemon is stopping; try again");
    };
    let (user, is_admin) = (caller.user.clone(), caller.is_admin());
    let language = local::language(shared, language);
    Ok(ThreadCaller { thread, user, is_admin, language, account })
}

/// Begins a run that answers the last question again.
async fn repeat(gateway: &GatewayState, caller: &ThreadCaller, context: &Value) -> Result<RunId, Refusal> {
    let options = NamedOptions::of(&Value::Null, context);
    let read = options.and_then(|options| Ok((options.shows_approvals()?, options.features()?)));
    let (shows_approvals, features) = read.or_else(|(status, why)| refused(status, &why))?;
    let choices = commands::choices(&gateway.0.shared, caller).await;
    let run = run_request::repeat(caller, Repetition { choices, shows_approvals, features });
    let id = run.task.run.clone();
    changed(gateway.0.shared.client.submit(run).await.map(|_| id))
}

/// Summarises a thread and returns the outcome in words.
async fn compact(gateway: &GatewayState, caller: &ThreadCaller) -> Result<String, Refusal> {
    let ThreadChoices { model, agent, .. } = commands::choices(&gateway.0.shared, caller).await;
    let (thread, user) = (caller.thread.clone(), caller.user.clone());
    let end =
        summarize(gateway, RunTask { model, agent, user, ..RunTask::new(thread, RunId::fresh()) }).await?;
    Ok(end.compaction.map(|made| commands::compacted(caller.language, made)).unwrap_or_default())
}

impl From<Choice> for CommandChoice {
    fn from(Choice { label, action }: Choice) -> Self {
        Self { label, action }
    }
}

async fn files(files: Vec<OutFile>) -> Result<Vec<CommandFile>, Refusal> {
    let mut read = Vec::new();
    for OutFile { name, path } in files {
        let content = tokio::fs::read_to_string(&path).await.map_err(|error| {
            tracing::error!(%error, name, "failed to read file of an answer");
            Box::new(refuse(StatusCode::SERVICE_UNAVAILABLE, "the file could not be read; try again"))
        })?;
        read.push(CommandFile { name, content });
    }
    Ok(read)
}
