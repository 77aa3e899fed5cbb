//! Slash commands on a thread. They are the same as in chats.

use super::{owned::UsableThread, summary::summarize};
use crate::{
    ApiError, Caller, GatewayState, Json, Scrubbed,
    http::language::PreferredLanguage,
    runs::{options::NamedOptions, request},
};
use pudu_agent::RunTask;
use pudu_base::{MessageId, RunId, ThreadId};
use pudu_channels::{Choice, FinalView, OutFile};
use pudu_dispatch::commands::{self, OfferedEntry, ThreadAnswer, ThreadCaller, ThreadChoices, ThreadReply};
use pudu_runs::ClientRun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a command, in bytes.
const MAX_COMMAND_BYTES: usize = 256 * 1024;

/// A command.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SlashCommandBody {
    /// The command with its slash, such as `/models gpt-5`.
    text: String,
    /// Options of the run that the command starts, as in a run request.
    #[serde(default)]
    context: Value,
}

/// Answer to a command.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SlashCommandAnswer {
    /// Thread on which the conversation continues: after `/new`, a new one.
    thread_id: ThreadId,
    /// Whether the text is not a command and must be sent to the agent as a message of a run. The other fields are then
    /// empty.
    is_message: bool,
    /// Answer, as Markdown.
    text: String,
    /// Commands to offer as buttons.
    choices: Vec<CommandChoice>,
    /// Text files that belong to the answer.
    files: Vec<CommandFile>,
    /// Run that the command started.
    run_id: Option<RunId>,
    /// Stored choices for the runs of the thread, unless a run sets its own.
    settings: ThreadSettings,
}

/// Command to offer as a button.
#[derive(Serialize, JsonSchema)]
struct CommandChoice {
    label: String,
    /// Text of the command.
    action: String,
}

/// Text file of an answer.
#[derive(Serialize, JsonSchema)]
struct CommandFile {
    name: String,
    content: String,
}

/// Stored choices for the runs of a thread; null means the configured default.
#[derive(Serialize, JsonSchema)]
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

/// The slash commands, followed by the skills and the prompts of MCP servers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ListedCommands {
    commands: Vec<ListedCommand>,
}

/// A slash command.
#[derive(Serialize, JsonSchema)]
struct ListedCommand {
    name: String,
    argument: String,
    help: String,
    /// `command`, `skill` or `prompt`.
    kind: &'static str,
    /// Whether it can be run on a thread.
    works_on_threads: bool,
}

/// Lists the slash commands in the order of the help, followed by the skills and the prompts of MCP servers.
pub(crate) async fn list(
    gateway: GatewayState,
    caller: Caller,
    PreferredLanguage(language): PreferredLanguage,
) -> Json<ListedCommands> {
    let skills = gateway.agent().catalog_of(&caller.user).await.enabled();
    let setup = gateway.agent().setup();
    let entry = |OfferedEntry { name, argument, about, kind }: OfferedEntry<'_>| ListedCommand {
        name: name.to_owned(),
        argument: argument.to_owned(),
        help: about,
        kind,
        works_on_threads: commands::works_on_threads(name),
    };
    let offered = commands::offered(language, &skills, &setup.prompts);
    Json(ListedCommands { commands: offered.map(entry).collect() })
}

/// Runs a command on a thread.
pub(crate) async fn run(
    gateway: GatewayState,
    caller: Caller,
    UsableThread(thread): UsableThread,
    PreferredLanguage(language): PreferredLanguage,
    Json(SlashCommandBody { text, context }): Json<SlashCommandBody>,
) -> Result<Scrubbed<SlashCommandAnswer>, ApiError> {
    if text.len() > MAX_COMMAND_BYTES {
        return Err(ApiError::too_large("`text` is larger than 256 KiB"));
    }
    let shared = &gateway.0.shared;
    let mut caller = caller.on_thread(&gateway, thread, language)?;
    let ThreadReply { thread, answer } = commands::on_thread(shared, &caller, text.trim()).await;
    caller.thread = thread;
    let (mut view, mut run_id, is_message) =
        (FinalView::default(), None, matches!(answer, ThreadAnswer::Message));
    match answer {
        ThreadAnswer::View(shown) => view = *shown,
        ThreadAnswer::Message => {}
        ThreadAnswer::Retry => run_id = Some(repeat(&gateway, &caller, &context).await?),
        ThreadAnswer::Compact => view.text = compact(&gateway, &caller).await?,
    }
    let settings = commands::choices(shared, &caller).await?.into();
    Ok(Scrubbed(SlashCommandAnswer {
        thread_id: caller.thread,
        is_message,
        text: view.text,
        choices: view.choices.into_iter().map(CommandChoice::from).collect(),
        files: files(view.files).await?,
        run_id,
        settings,
    }))
}

/// Starts a run that answers the last question again.
async fn repeat(gateway: &GatewayState, caller: &ThreadCaller, context: &Value) -> Result<RunId, ApiError> {
    let options = NamedOptions::read(&Value::Null, context)?;
    let (shows_approvals, features) = (options.shows_approvals()?, options.features()?);
    let ThreadChoices { model, thinking, agent, .. } = commands::choices(&gateway.0.shared, caller).await?;
    let again = Some(MessageId::fresh());
    let task = request::task(caller.thread.clone(), &caller.user, shows_approvals);
    let id = task.run.clone();
    let task = RunTask { model, thinking, agent, features, again, ..task };
    gateway.runs().submit(ClientRun::new(task)).await?;
    Ok(id)
}

/// Summarises a thread and describes the outcome.
async fn compact(gateway: &GatewayState, caller: &ThreadCaller) -> Result<String, ApiError> {
    let ThreadChoices { model, agent, .. } = commands::choices(&gateway.0.shared, caller).await?;
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

async fn files(files: Vec<OutFile>) -> Result<Vec<CommandFile>, ApiError> {
    let mut read = Vec::new();
    for OutFile { name, path } in files {
        let content = tokio::fs::read_to_string(&path).await.map_err(|error| {
            tracing::error!(%error, name, "failed to read file of an answer");
            ApiError::unavailable("the file could not be read; try again")
        })?;
        read.push(CommandFile { name, content });
    }
    Ok(read)
}
