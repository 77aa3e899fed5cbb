//! A request for a run: what clients of LangGraph may say, and the task that is made of it. Accepted requests are kept in a
//! form from which the same task is made again after a restart.

use super::{
    GatewayState,
    caller::{Caller, CallerRole},
    errors::refuse,
    input as sent,
    input::InputMessage,
    options,
    refusal::{ACCOUNT, Refusal, refused, unavailable},
    threads::notes,
};
use crate::gateway::json::Json;
use crate::{bus::STORE_TIMEOUT, clock, dispatch::input, home, local};
use axum::{http::StatusCode, response::IntoResponse};
use pudu_client::{
    Asker, Authoring, ClientRun, Multitask, RunTask,
    base::{Human, Message, MessageId, RunId, Seq, SharedFile, Thinking, ThreadFolder, ThreadId, UserId},
    store::RunRow,
    wire::{checkpoint, modes::Modes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The assistant that answers if no other is named.
pub(super) const LEAD: &str = "lead_agent";
/// A value of a request with `data:` in it is shown up to so many bytes.
const MAX_SHOWN_DATA_BYTES: usize = 1024;

/// Body of a request for a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunBody {
    assistant_id: Option<String>,
    input: Value,
    command: Value,
    metadata: Value,
    config: Value,
    context: Value,
    checkpoint: Value,
    checkpoint_id: Value,
    pub(super) stream_mode: Value,
    stream_subgraphs: Value,
    stream_resumable: Value,
    on_disconnect: Option<String>,
    multitask_strategy: Option<String>,
    if_not_exists: Option<String>,
    on_completion: Option<String>,
    durability: Value,
    checkpoint_during: Value,
    langsmith_tracer: Value,
    interrupt_before: Value,
    interrupt_after: Value,
    webhook: Value,
    after_seconds: Value,
    feedback_keys: Value,
}

/// A task as it is kept with its run.
#[derive(Debug, Deserialize, Serialize)]
struct StoredTask {
    input: Vec<Human>,
    fields: Vec<(MessageId, Arc<Value>)>,
    model: Option<String>,
    thinking: Option<String>,
    agent: Option<String>,
    #[serde(default)]
    builds: Option<String>,
    from: Option<Seq>,
    goal: Option<String>,
    steps: Option<u32>,
    at: String,
    #[serde(default)]
    shows_approvals: bool,
}

/// A request that was read.
pub(super) struct ReadRequest {
    pub(super) run: ClientRun,
    pub(super) modes: Modes,
    /// Whether the run stops when its reader goes away.
    pub(super) cancels: bool,
}

/// Refuses a run as another one is at work on its thread.
pub(super) fn busy<T>(other: &RunId) -> Result<T, Refusal> {
    let why =
        format!("run {other} is at work on the thread; wait for it, or send another multitask_strategy");
    refused(StatusCode::CONFLICT, &why)
}

fn wrong<T>(why: &str) -> Result<T, Refusal> {
    refused(StatusCode::UNPROCESSABLE_ENTITY, why)
}

impl RunBody {
    /// Returns the thread that the configuration of a stateless request names.
    pub(super) fn thread(&self) -> Option<&str> {
        self.config["configurable"]["thread_id"].as_str()
    }

    /// Returns whether the run may begin a thread; `usual` if the client does not say.
    pub(super) fn may_begin_thread(&self, usual: bool) -> bool {
        self.if_not_exists.as_deref().map_or(usual, |word| word == "create")
    }

    /// Refuses options that would not be obeyed.
    fn check_options(&self) -> Result<(), Refusal> {
        let unsupported = |name: &str| {
            let detail = json!({ "code": "unsupported_run_option", "message": format!("{name} is not supported"), "option": name });
            Err(Box::new(
                (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": detail }))).into_response(),
            ))
        };
        let is_empty = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        for (name, value) in [
            ("webhook", &self.webhook),
            ("after_seconds", &self.after_seconds),
            ("feedback_keys", &self.feedback_keys),
            ("interrupt_before", &self.interrupt_before),
            ("interrupt_after", &self.interrupt_after),
        ] {
            if !is_empty(value) {
                return unsupported(name);
            }
        }
        match self.if_not_exists.as_deref() {
            None | Some("create" | "reject") => Ok(()),
            Some(_) => unsupported("if_not_exists"),
        }
    }

    /// Reads whether the run's thread is deleted after it, which is one of its own then.
    fn deletes_thread(&self, own_thread: bool) -> Result<bool, Refusal> {
        match self.on_completion.as_deref() {
            None | Some("keep") => Ok(false),
            Some("delete") if own_thread => Ok(true),
            Some("delete") => wrong(
                "on_completion is delete only for a run on a new thread: POST /runs… without a thread_id",
            ),
            Some(_) => wrong("on_completion is neither delete nor keep"),
        }
    }

    /// Reads whether the run outlives its reader.
    fn cancels(&self) -> Result<bool, Refusal> {
        match self.on_disconnect.as_deref() {
            None | Some("cancel") => Ok(true),
            Some("continue") => Ok(false),
            Some(_) => wrong("on_disconnect is neither cancel nor continue"),
        }
    }

    fn multitask(&self) -> Result<Multitask, Refusal> {
        match &self.multitask_strategy {
            None => Ok(Multitask::Reject),
            Some(word) => match Multitask::parse(word) {
                Some(multitask) => Ok(multitask),
                None => wrong("multitask_strategy is none of reject, interrupt, rollback, enqueue"),
            },
        }
    }

    /// Returns the agent that is asked, if it is not the lead agent.
    fn agent(&self) -> Option<String> {
        let named = |place: &Value| place["agent_name"].as_str().map(str::to_owned);
        let asked = named(&self.config["context"]).or_else(|| named(&self.context));
        let asked = asked.or_else(|| named(&self.config["configurable"]));
        let assistant =
            self.assistant_id.clone().filter(|assistant| !matches!(assistant.as_str(), LEAD | "agent" | ""));
        let assistant = assistant.map(|assistant| assistant.to_lowercase().replace('_', "-"));
        asked.or(assistant).filter(|name| name != "lead-agent" && name != LEAD)
    }

    /// Returns how many model calls the run may take, if the client says so.
    fn steps(&self, most: u32) -> Option<u32> {
        let asked = self.config["recursion_limit"].as_u64().filter(|steps| *steps > 0)?;
        Some(u32::try_from(asked).unwrap_or(u32::MAX).min(most))
    }

    fn is_bootstrap(&self) -> bool {
        [&self.config["context"], &self.context].iter().any(|place| place["is_bootstrap"] == true)
    }

    /// Returns the messages that are said: those of the input, or the answer to a question.
    fn said(&self) -> Result<Vec<InputMessage>, Refusal> {
        let answer = &self.command["resume"];
        let list = match (&self.input, answer) {
            (Value::Null, Value::Null) => return Ok(Vec::new()),
            (Value::Null, Value::String(answer)) => json!([{ "type": "human", "content": answer }]),
            (Value::Null, answer) => json!([{ "type": "human", "content": answer.to_string() }]),
            (Value::Object(input), _) => input.get("messages").cloned().unwrap_or_default(),
            (input @ (Value::Array(_) | Value::String(_)), _) => input.clone(),
            _ => return wrong("input is no object"),
        };
        match sent::messages(&list) {
            Ok(said) => Ok(said),
            Err(why) => refused(StatusCode::BAD_REQUEST, &format!("input.{why}")),
        }
    }
}

/// Reads a request for a run on a thread, which may be one that it alone has.
pub(super) async fn read(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ThreadId,
    (body, own_thread): (RunBody, bool),
) -> Result<ReadRequest, Refusal> {
    let deletes_thread = body.deletes_thread(own_thread)?;
    body.check_options()?;
    let modes = Modes::read(&body.stream_mode).or_else(|why| wrong(&why))?;
    let (cancels, multitask) = (body.cancels()?, body.multitask()?);
    if !(body.metadata.is_object() || body.metadata.is_null()) {
        return wrong("metadata is no object");
    }
    let client = &gateway.0.shared.client;
    let models = client.models();
    let chosen =
        options::read(&body.config, &body.context, |name| models.iter().any(|model| model.name == name))
            .or_else(|(status, why)| refused(status, &why))?;
    let shows_approvals = options::shows_approvals(&body.config, &body.context)
        .or_else(|(status, why)| refused(status, &why))?;
    let agent = body.agent();
    let builds = agent.clone().filter(|_| body.is_bootstrap());
    if builds.is_some() && caller.role != CallerRole::Admin {
        return refused(StatusCode::FORBIDDEN, "only an administrator makes agents");
    }
    if let Some(name) = agent.as_deref().filter(|_| builds.is_none())
        && client.custom_agent(name).await.is_err()
    {
        return refused(StatusCode::NOT_FOUND, &format!("there is no assistant `{name}`"));
    }
    let from = checkpoint::wanted(&body.checkpoint_id, &body.checkpoint).or_else(|why| wrong(&why))?;
    if let Some(seq) = from.filter(|seq| *seq > 0) {
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        let newest = db.log_before(thread, seq.saturating_add(1), 1).await;
        let newest = newest.map_err(|error| unavailable(&error))?;
        if newest.first().is_none_or(|row| row.seq != seq) {
            return refused(StatusCode::NOT_FOUND, "there is no such checkpoint");
        }
    }
    let said = body.said()?;
    if said.is_empty() && from.is_none() && body.input.is_null() && !body.command.is_null() {
        return wrong("command has nothing that can be done: send `resume`, or an input");
    }
    let folder = ThreadFolder { owner: caller.user.clone(), thread: thread.clone() };
    if let Some(other) = client.live_runs(thread).first().filter(|_| multitask == Multitask::Reject) {
        // Before its images are taken for nothing.
        return busy(&other.run);
    }
    let (input, fields) = take(gateway, &folder, said).await?;
    let goal = input.iter().rev().find_map(|human| input::goal_of(&human.text));
    let stored = StoredTask {
        input,
        fields,
        model: chosen.model,
        thinking: chosen.thinking,
        agent,
        builds,
        from,
        goal,
        steps: body.steps(gateway.0.watcher.current().runs.max_recursion_limit),
        at: clock::told(clock::now(), &jiff::tz::TimeZone::system()),
        shows_approvals,
    };
    let kwargs = shown_kwargs(&body);
    let request = json!({ "kwargs": kwargs, "task": stored, "stream_mode": body.stream_mode }).to_string();
    let metadata = match body.metadata {
        Value::Object(metadata) => notes(metadata)?,
        _ => String::new(),
    };
    let run = ClientRun {
        assistant: body.assistant_id.clone().unwrap_or_else(|| LEAD.to_owned()),
        task: task(thread.clone(), RunId::fresh(), caller.user.clone(), stored),
        account: ACCOUNT.to_owned(),
        request,
        metadata,
        multitask,
        deletes_thread,
    };
    Ok(ReadRequest { run, modes, cancels })
}

/// Returns the request as lists of runs show it: without secrets.
fn shown_kwargs(body: &RunBody) -> Value {
    let mut config = body.config.clone();
    for place in ["context", "configurable"] {
        if let Some(Value::Object(place)) = config.get_mut(place) {
            place.remove("secrets");
        }
    }
    let mut context = body.context.clone();
    if let Value::Object(context) = &mut context {
        context.remove("secrets");
    }
    let mut input = body.input.clone();
    leave_images_out(&mut input);
    json!({ "input": input, "config": config, "context": context })
}

/// Leaves out what images in a value say: they are among the thread's uploads.
fn leave_images_out(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("data:") && text.len() > MAX_SHOWN_DATA_BYTES => {
            let kind = text.split([';', ',']).next().unwrap_or_default();
            *text = format!("{kind},");
        }
        Value::Array(list) => list.iter_mut().for_each(leave_images_out),
        Value::Object(fields) => fields.values_mut().for_each(leave_images_out),
        _ => {}
    }
}

/// Makes people's messages of what was sent: images become uploads, and uploads that are named come along.
async fn take(
    gateway: &GatewayState,
    folder: &ThreadFolder,
    said: Vec<InputMessage>,
) -> Result<(Vec<Human>, Vec<(MessageId, Arc<Value>)>), Refusal> {
    let (mut humans, mut fields) = (Vec::new(), Vec::new());
    for (at, InputMessage { message, fields: own, images, uploads }) in said.into_iter().enumerate() {
        let Message::Human(mut human) = message else {
            let why = format!(
                "input.messages[{at}]: a run takes people's messages; others are written by POST …/state"
            );
            return refused(StatusCode::BAD_REQUEST, &why);
        };
        if !images.is_empty() || !uploads.is_empty() {
            human.files = files(gateway, folder, &images, &uploads).await?;
        }
        human.at = Some(clock::told(clock::now(), &jiff::tz::TimeZone::system()));
        if !own.is_null() {
            fields.push((human.id.clone(), own));
        }
        humans.push(human);
    }
    Ok((humans, fields))
}

/// Puts images among a thread's uploads, and finds uploads by their names.
async fn files(
    gateway: &GatewayState,
    folder: &ThreadFolder,
    images: &[pudu_channels::Attachment],
    uploads: &[String],
) -> Result<Vec<SharedFile>, Refusal> {
    let shared = &gateway.0.shared;
    let broken = |error: &dyn std::fmt::Display| {
        tracing::error!(thread = %folder.thread, %error, "failed to take files");
        Box::new(refuse(StatusCode::SERVICE_UNAVAILABLE, "the files could not be taken just now; try again"))
    };
    let _kept = shared.client.keep_files().await;
    let db = shared.db.within(STORE_TIMEOUT);
    db.thread_used(folder, ACCOUNT, clock::now()).await.map_err(|error| broken(&error))?;
    let mut files = Vec::new();
    for image in images {
        let scratch = home::scratch(&shared.home);
        let path = scratch.join(MessageId::fresh().as_str());
        tokio::fs::create_dir_all(&scratch).await.map_err(|error| broken(&error))?;
        if let Err(error) = local::write_inline(image, &path, shared.rules().uploads.max_file_size).await {
            return wrong(&error.to_string());
        }
        let adopted = shared.client.adopt(&folder.thread, &path, &image.name).await;
        files.push(adopted.map_err(|error| broken(&error))?);
    }
    if !uploads.is_empty() {
        let known = shared.client.files(&folder.thread).await.map_err(|error| broken(&error))?;
        let known = known.uploads(10_000).await.map_err(|error| broken(&error))?;
        for upload in known.iter().filter(|upload| uploads.contains(&upload.name)) {
            let (name, path, size) = (upload.name.clone(), upload.path.clone(), upload.size);
            let mut file = SharedFile { name, path, size, reading: None };
            shared.client.read_document(&folder.thread, &mut file).await;
            files.push(file);
        }
    }
    Ok(files)
}

/// Makes the task of a run that a death or a stop of the daemon cut; `None` if its request cannot be read.
pub(super) fn restored(row: &RunRow) -> Option<RunTask> {
    let request: Map<String, Value> = serde_json::from_str(&row.request).ok()?;
    let stored: StoredTask = serde_json::from_value(request.get("task")?.clone()).ok()?;
    let user = UserId::of(&row.user).ok()?;
    let task = task(row.thread.clone(), row.id.clone(), user, stored);
    Some(RunTask { suspended: row.suspended, ..task })
}

fn task(thread: ThreadId, run: RunId, user: UserId, stored: StoredTask) -> RunTask {
    let StoredTask { input, fields, model, thinking, agent, builds, from, goal, steps, at, shows_approvals } =
        stored;
    let asker = Asker {
        account: ACCOUNT.to_owned(),
        person: user.to_string(),
        name: user.to_string(),
        cannot_approve: !shows_approvals,
    };
    RunTask {
        first: input.first().map(|human| human.id.clone()),
        input,
        client_fields: fields,
        model,
        thinking: thinking.as_deref().and_then(Thinking::parse),
        authoring: builds.clone().map_or(Authoring::Nothing, Authoring::New),
        agent: agent.filter(|_| builds.is_none()),
        from,
        goal,
        steps,
        at: Some(at),
        asker: Some(asker),
        secrets_of: user.clone(),
        user,
        ..RunTask::new(thread, run)
    }
}
