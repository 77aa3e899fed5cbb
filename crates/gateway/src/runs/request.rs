//! Parses a request for a run and creates its task.

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
use pudu_agent::{
    Agent, Asker, Authoring, RunTask, SchedulePlace,
    agents::{LEAD, is_lead},
};
use pudu_base::{Human, Message, MessageId, RunId, SharedFile, ThreadFolder, ThreadId, UserId};
use pudu_dispatch::{commands, local};
use pudu_kit::{clock, home};
use pudu_langgraph::{checkpoint, modes::Modes, thread::API_ACCOUNT};
use pudu_runs::{ClientRun, Multitask};
use pudu_texts::Language;
use serde_json::{Value, json};
use std::sync::Arc;

/// A parsed request.
pub(crate) struct ReadRequest {
    pub(crate) run: ClientRun,
    pub(crate) modes: Modes,
    /// Whether the run stops when its reader disconnects.
    pub(crate) cancels: bool,
    /// Options that have no effect.
    pub(crate) ignored: Ignored,
}

/// Parses a request for a run on a thread, which may have been created for it.
pub(crate) async fn read(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ThreadId,
    body: RunBody,
    own_thread: bool,
) -> Result<ReadRequest, ApiError> {
    let deletes_thread = body.deletes_thread(own_thread)?;
    body.check_options()?;
    let mut unserved_modes = Vec::new();
    let modes = Modes::read(&body.stream_mode, &mut unserved_modes).map_err(ApiError::invalid)?;
    let ignored = Ignored::of_run(unserved_modes, body.ignored());
    let (cancels, multitask) = (body.cancels(), body.multitask());
    let steps = body.steps(gateway.config().runs.max_recursion_limit)?;
    let models = gateway.agent().models();
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
        return Err(ApiError::forbidden("only an administrator may create shared agents"));
    }
    if let Some(name) = agent.as_deref().filter(|_| builds.is_none()) {
        known_agent(gateway.agent(), name, &caller.user).await?;
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
    let mut messages = body.read_messages()?;
    let goal = messages.iter_mut().filter_map(InputMessage::take_goal).last();
    let folder = ThreadFolder { owner: caller.user.clone(), thread: thread.clone() };
    let others = gateway.runs().live_runs(thread);
    if let Some(other) = others.first().filter(|_| multitask == Multitask::Reject) {
        // Checked before the images of the request are stored.
        return Err(busy(&other.run));
    }
    // Not checked while another run is live, because its result is still unknown.
    if messages.is_empty() && from.is_none() && others.is_empty() {
        check_unfinished(gateway.agent(), thread).await?;
    }
    let (input, fields) = take(gateway, &folder, messages).await?;
    let task = RunTask {
        first: input.first().map(|human| human.id.clone()),
        input,
        client_fields: fields,
        model: chosen.model.or(stored_choices.model),
        thinking: chosen.thinking.or(stored_choices.thinking),
        authoring: match &builds {
            Some(name) if is_lead(name) => Authoring::Lead,
            Some(name) => Authoring::New(name.clone()),
            None => Authoring::Nothing,
        },
        agent: agent.filter(|_| builds.is_none()),
        from,
        goal,
        steps,
        features,
        own_secrets,
        ..task(thread.clone(), &caller.user, shows_approvals)
    };
    let request = json!({ "kwargs": body.to_listed_json(), "stream_mode": body.stream_mode });
    let run = ClientRun {
        assistant: body.assistant(),
        request: request.as_object().cloned().unwrap_or_default(),
        metadata: body.metadata.map_or_else(|| Ok(String::new()), notes)?,
        multitask,
        deletes_thread,
        ..ClientRun::new(task)
    };
    Ok(ReadRequest { run, modes, cancels, ignored })
}

/// Refuses an agent that does not exist.
pub(crate) async fn known_agent(agent: &Agent, name: &str, user: &UserId) -> Result<(), ApiError> {
    match agent.custom_agent(name, Some(user)).await {
        Ok(_) => Ok(()),
        Err(_) => Err(ApiError::not_found(format!("unknown assistant `{name}`"))),
    }
}

/// Refuses a run without messages on a thread with nothing left to do.
async fn check_unfinished(agent: &Agent, thread: &ThreadId) -> Result<(), ApiError> {
    let state = agent.state(thread).await?;
    match checkpoint::next(&state).is_empty() {
        true => Err(ApiError::invalid(
            "input.messages: there is no message, and the thread has no unfinished work to continue",
        )),
        false => Ok(()),
    }
}

/// Creates people's messages from a request: images become uploads, and named uploads are attached.
async fn take(
    gateway: &GatewayState,
    folder: &ThreadFolder,
    said: Vec<InputMessage>,
) -> Result<(Vec<Human>, Vec<(MessageId, Arc<Value>)>), ApiError> {
    let (mut humans, mut fields) = (Vec::new(), Vec::new());
    for (at, InputMessage { message, fields: own, images, uploads }) in said.into_iter().enumerate() {
        let Message::Human(mut human) = message else {
            let why = format!(
                "input.messages[{at}]: a run accepts only human messages; write others with POST …/state"
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

/// Stores images in a thread's uploads, and finds uploads by name.
async fn files(
    gateway: &GatewayState,
    folder: &ThreadFolder,
    images: &[pudu_channels::Attachment],
    uploads: &[String],
) -> Result<Vec<SharedFile>, ApiError> {
    let shared = &gateway.0.shared;
    let broken = |error: &dyn std::fmt::Display| {
        tracing::error!(thread = %folder.thread, %error, "failed to take files");
        ApiError::unavailable("the files could not be stored; try again")
    };
    let _kept = shared.agent.keep_files().await;
    gateway.db().thread_used(folder, API_ACCOUNT, clock::now()).await.map_err(|error| broken(&error))?;
    let mut files = Vec::new();
    for image in images {
        let scratch = home::scratch(&shared.home);
        let path = scratch.join(MessageId::fresh().as_str());
        tokio::fs::create_dir_all(&scratch).await.map_err(|error| broken(&error))?;
        if let Err(error) = local::write_inline(image, &path, shared.rules().uploads.max_file_size).await {
            return Err(ApiError::invalid(error.to_string()));
        }
        let adopted = shared.agent.adopt(&folder.thread, &path, &image.name).await;
        files.push(adopted.map_err(|error| broken(&error))?);
    }
    if !uploads.is_empty() {
        let known = shared.agent.files(&folder.thread).await.map_err(|error| broken(&error))?;
        let known = known.uploads(10_000).await.map_err(|error| broken(&error))?;
        for upload in known.iter().filter(|upload| uploads.contains(&upload.name)) {
            let (name, path, size) = (upload.name.clone(), upload.path.clone(), upload.size);
            let mut file = SharedFile { name, path, size, reading: None };
            shared.agent.read_document(&folder.thread, &mut file).await;
            files.push(file);
        }
    }
    Ok(files)
}

/// Creates the task of a client's run.
pub(crate) fn task(thread: ThreadId, user: &UserId, shows_approvals: bool) -> RunTask {
    let asker = Asker {
        account: API_ACCOUNT.to_owned(),
        person: user.to_string(),
        name: user.to_string(),
        cannot_approve: !shows_approvals,
    };
    RunTask {
        finds_own_agents: true,
        at: Some(clock::for_model(clock::now(), &jiff::tz::TimeZone::system())),
        asker: Some(asker),
        schedule: shows_approvals.then(SchedulePlace::default),
        secrets_of: user.clone(),
        user: user.clone(),
        ..RunTask::new(thread, RunId::fresh())
    }
}
