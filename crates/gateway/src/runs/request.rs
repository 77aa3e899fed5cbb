//! A request for a run, and the task made from it. Accepted requests are kept in a form from which the same task is
//! made again after a restart.

use super::{
    body::{RunBody, busy},
    input::InputMessage,
    options::NamedOptions,
};
use crate::{
    ApiError, Caller, GatewayState,
    http::ignored::Ignored,
    threads::{lifecycle::notes, state::unknown_checkpoint},
};
use pudu_client::{
    Asker, Authoring, Client, ClientRun, Multitask, RunFeatures, RunTask,
    agents::{LEAD, is_lead},
    base::{Human, Message, MessageId, RunId, Seq, SharedFile, Thinking, ThreadFolder, ThreadId, UserId},
    store::RunRow,
    wire::{checkpoint, modes::Modes, thread::API_ACCOUNT},
};
use pudu_dispatch::{
    commands::{self, ThreadCaller, ThreadChoices},
    input, local,
};
use pudu_kit::{clock, home};
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A task in the form that is stored with its run.
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
    #[serde(default)]
    features: RunFeatures,
    #[serde(default)]
    again: Option<MessageId>,
}

/// Settings of a run that answers the last question of a thread again.
pub(crate) struct RepeatedRun {
    pub(crate) choices: ThreadChoices,
    pub(crate) shows_approvals: bool,
    pub(crate) features: RunFeatures,
}

/// A request that was read.
pub(crate) struct ReadRequest {
    pub(crate) run: ClientRun,
    pub(crate) modes: Modes,
    /// Whether the run stops when its reader goes away.
    pub(crate) cancels: bool,
    /// Options without effect.
    pub(crate) ignored: Ignored,
}

/// Reads a request for a run on a thread, which may be one that it alone has.
pub(crate) async fn read(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ThreadId,
    body: RunBody,
    own_thread: bool,
) -> Result<ReadRequest, ApiError> {
    let deletes_thread = body.deletes_thread(own_thread)?;
    body.check_options()?;
    let mut unknown_modes = Vec::new();
    let modes = Modes::read(&body.stream_mode, &mut unknown_modes).map_err(ApiError::invalid)?;
    let ignored = Ignored::of_run(unknown_modes, body.ignored());
    let (cancels, multitask) = (body.cancels(), body.multitask());
    let steps = body.steps(gateway.config().runs.max_recursion_limit)?;
    let client = gateway.client();
    let models = client.models();
    let options = || {
        let options = NamedOptions::read(&body.config, &body.context)?;
        let chosen = options.model(|name| models.iter().any(|model| model.name == name))?;
        let agent = body.agent(options.agent()?);
        let switched = (options.features()?, options.secrets()?);
        Ok::<_, ApiError>((chosen, options.shows_approvals()?, agent, options.is_bootstrap()?, switched))
    };
    let (chosen, shows_approvals, agent, is_bootstrap, (features, own_secrets)) = options()?;
    let caller_on_thread = caller.on_thread(gateway, thread.clone(), Language::default())?;
    let stored_choices = commands::choices(&gateway.0.shared, &caller_on_thread).await?;
    let builds = agent.clone().filter(|_| is_bootstrap);
    if builds.is_some() && caller.user == UserId::local() && !caller.is_admin() {
        return Err(ApiError::forbidden("only an administrator makes agents for everybody"));
    }
    if let Some(name) = agent.as_deref().filter(|_| builds.is_none()) {
        known_agent(client, name, &caller.user).await?;
    }
    let (agent, builds) = match (agent, stored_choices.authoring) {
        (None, Authoring::New(name)) => (None, Some(name)),
        (None, Authoring::Lead) => (None, Some(LEAD.to_owned())),
        (agent, _) => (agent.or(stored_choices.agent), builds),
    };
    let from = body.checkpoint(thread)?;
    if let Some(seq) = from.filter(|seq| *seq > 0) {
        let db = gateway.db();
        let newest = db.log_before(thread, seq.saturating_add(1), 1).await;
        let newest = newest?;
        if newest.first().is_none_or(|row| row.seq != seq) {
            return Err(unknown_checkpoint());
        }
    }
    let said = body.read_messages()?;
    let folder = ThreadFolder { owner: caller.user.clone(), thread: thread.clone() };
    let others = client.live_runs(thread);
    if let Some(other) = others.first().filter(|_| multitask == Multitask::Reject) {
        // Before its images are taken for nothing.
        return Err(busy(&other.run));
    }
    // The result of another run is not known yet.
    if said.is_empty() && from.is_none() && others.is_empty() {
        check_unfinished(client, thread).await?;
    }
    let (input, fields) = take(gateway, &folder, said).await?;
    let goal = input.iter().rev().find_map(|human| input::goal_of(&human.text));
    let stored = StoredTask {
        input,
        fields,
        model: chosen.model.or(stored_choices.model),
        thinking: chosen.thinking.or(stored_choices.thinking).map(|thinking| thinking.name().to_owned()),
        agent,
        builds,
        from,
        goal,
        steps,
        at: clock::for_model(clock::now(), &jiff::tz::TimeZone::system()),
        shows_approvals,
        features,
        again: None,
    };
    let request = json!({ "kwargs": body.to_listed_json(), "task": stored, "stream_mode": body.stream_mode });
    let run = ClientRun {
        assistant: body.assistant(),
        task: RunTask { own_secrets, ..task(thread.clone(), RunId::fresh(), caller.user.clone(), stored) },
        account: API_ACCOUNT.to_owned(),
        request: request.to_string(),
        metadata: body.metadata.map_or_else(|| Ok(String::new()), notes)?,
        multitask,
        deletes_thread,
    };
    Ok(ReadRequest { run, modes, cancels, ignored })
}

/// Makes a run that answers the last question of a thread again.
pub(crate) fn repeat(caller: &ThreadCaller, repetition: RepeatedRun) -> ClientRun {
    let RepeatedRun { choices, shows_approvals, features } = repetition;
    let ThreadChoices { model, thinking, agent, .. } = choices;
    let stored = StoredTask {
        input: Vec::new(),
        fields: Vec::new(),
        model,
        thinking: thinking.map(|thinking| thinking.name().to_owned()),
        agent,
        builds: None,
        from: None,
        goal: None,
        steps: None,
        at: clock::for_model(clock::now(), &jiff::tz::TimeZone::system()),
        shows_approvals,
        features,
        again: Some(MessageId::fresh()),
    };
    let request = json!({ "kwargs": {}, "task": stored });
    ClientRun {
        assistant: String::new(),
        task: task(caller.thread.clone(), RunId::fresh(), caller.user.clone(), stored),
        account: API_ACCOUNT.to_owned(),
        request: request.to_string(),
        metadata: String::new(),
        multitask: Multitask::Reject,
        deletes_thread: false,
    }
}

/// Refuses an agent that does not exist.
pub(crate) async fn known_agent(client: &Client, name: &str, user: &UserId) -> Result<(), ApiError> {
    match client.custom_agent(name, Some(user)).await {
        Ok(_) => Ok(()),
        Err(_) => Err(ApiError::not_found(format!("there is no assistant `{name}`"))),
    }
}

/// Refuses a run without messages on a thread that is finished.
async fn check_unfinished(client: &Client, thread: &ThreadId) -> Result<(), ApiError> {
    let state = client.state(thread).await?;
    match checkpoint::next(&state).is_empty() {
        true => Err(ApiError::invalid(
            "input.messages: there is no message, and nothing that the thread is to go on with",
        )),
        false => Ok(()),
    }
}

/// Makes people's messages from a request: images become uploads, and named uploads are attached.
async fn take(
    gateway: &GatewayState,
    folder: &ThreadFolder,
    said: Vec<InputMessage>,
) -> Result<(Vec<Human>, Vec<(MessageId, Arc<Value>)>), ApiError> {
    let (mut humans, mut fields) = (Vec::new(), Vec::new());
    for (at, InputMessage { message, fields: own, images, uploads }) in said.into_iter().enumerate() {
        let Message::Human(mut human) = message else {
            let why = format!(
                "input.messages[{at}]: a run takes people's messages; others are written by POST …/state"
            );
            return Err(ApiError::bad_request(why));
        };
        if human.text.trim().is_empty() && images.is_empty() && uploads.is_empty() {
            return Err(ApiError::invalid(format!("input.messages[{at}]: the message is empty")));
        }
        if !images.is_empty() || !uploads.is_empty() {
            human.files = files(gateway, folder, &images, &uploads).await?;
        }
        human.at = Some(clock::for_model(clock::now(), &jiff::tz::TimeZone::system()));
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
) -> Result<Vec<SharedFile>, ApiError> {
    let shared = &gateway.0.shared;
    let broken = |error: &dyn std::fmt::Display| {
        tracing::error!(thread = %folder.thread, %error, "failed to take files");
        ApiError::unavailable("the files could not be taken just now; try again")
    };
    let _kept = shared.client.keep_files().await;
    gateway.db().thread_used(folder, API_ACCOUNT, clock::now()).await.map_err(|error| broken(&error))?;
    let mut files = Vec::new();
    for image in images {
        let scratch = home::scratch(&shared.home);
        let path = scratch.join(MessageId::fresh().as_str());
        tokio::fs::create_dir_all(&scratch).await.map_err(|error| broken(&error))?;
        if let Err(error) = local::write_inline(image, &path, shared.rules().uploads.max_file_size).await {
            return Err(ApiError::invalid(error.to_string()));
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
pub(crate) fn restored(row: &RunRow) -> Option<RunTask> {
    let request: Map<String, Value> = serde_json::from_str(&row.request).ok()?;
    let stored: StoredTask = serde_json::from_value(request.get("task")?.clone()).ok()?;
    let user = UserId::from_raw(&row.user).ok()?;
    let task = task(row.thread.clone(), row.id.clone(), user, stored);
    Some(RunTask { suspended: row.suspended, ..task })
}

fn task(thread: ThreadId, run: RunId, user: UserId, stored: StoredTask) -> RunTask {
    let StoredTask {
        input,
        fields,
        model,
        thinking,
        agent,
        builds,
        from,
        goal,
        steps,
        at,
        shows_approvals,
        features,
        again,
    } = stored;
    let asker = Asker {
        account: API_ACCOUNT.to_owned(),
        person: user.to_string(),
        name: user.to_string(),
        cannot_approve: !shows_approvals,
    };
    RunTask {
        first: input.first().map(|human| human.id.clone()),
        input,
        again,
        client_fields: fields,
        model,
        thinking: thinking.as_deref().and_then(Thinking::parse),
        authoring: match &builds {
            Some(name) if is_lead(name) => Authoring::Lead,
            Some(name) => Authoring::New(name.clone()),
            None => Authoring::Nothing,
        },
        agent: agent.filter(|_| builds.is_none()),
        finds_own_agents: true,
        from,
        goal,
        steps,
        features,
        at: Some(at),
        asker: Some(asker),
        secrets_of: user.clone(),
        user,
        ..RunTask::new(thread, run)
    }
}
