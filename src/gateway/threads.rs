//! Threads as LangGraph's clients use them: made, found, changed, read as they are and as they were.

use super::{
    GatewayState,
    caller::Caller,
    guard::refuse,
    run_request::ACCOUNT,
    thread,
    wire::{
        checkpoint::{self, Checkpoint, ValuesWriter},
        input::{self, SentMessage},
    },
};
use crate::{bus::STORE_TIMEOUT, clock};
use axum::{
    Json,
    extract::{Path, State, rejection::JsonRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_client::{
    SubmitError,
    base::{Message, MessageId, Outcome, Seq, ThreadFolder, ThreadId, ThreadState, Todo, Update},
    harness::RunState,
    store::{ClientThread, Deletion, LogEntry, NewThread, StoreError, ThreadChange},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// So many threads or checkpoints are listed, unless told otherwise, and at most.
const LISTED: (usize, usize) = (10, 1000);
const HISTORY: (usize, usize) = (10, 100);
/// Rows of threads that are read at once for a search.
const SEARCH_PAGE: i64 = 200;
/// Notes of a client on a thread have so many bytes at most.
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Keys of notes that a client may not write.
const OWNERS: [&str; 2] = ["owner_id", "user_id"];

pub(super) type Refused = Box<Response>;

/// Answers that the store failed.
pub(super) fn unavailable(error: &dyn std::fmt::Display) -> Refused {
    tracing::error!(%error, "failed to read or write store for a client");
    Box::new(refuse(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer just now; try again"))
}

pub(super) fn refused<T>(status: StatusCode, why: &str) -> Result<T, Refused> {
    Err(Box::new(refuse(status, why)))
}

pub(super) fn missing<T>() -> Result<T, Refused> {
    refused(StatusCode::NOT_FOUND, "there is no such thread")
}

/// Answers a request whose work may be refused.
pub(super) fn answer<T: IntoResponse>(done: Result<T, Refused>) -> Response {
    done.map_or_else(|refusal| *refusal, IntoResponse::into_response)
}

/// Reads a body.
pub(super) fn body<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Refused> {
    body.map(|Json(body)| body).map_err(|error| Box::new(refuse(error.status(), &error.body_text())))
}

/// Finds a thread of the caller's. Those of others are not told from those that there are not.
pub(super) async fn own(gateway: &GatewayState, caller: &Caller, id: &str) -> Result<ClientThread, Refused> {
    let id = thread::id(id)?;
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let found = db.client_thread(&id).await.map_err(|error| unavailable(&error))?;
    match found.filter(|thread| thread.user == caller.user) {
        Some(thread) => Ok(thread),
        None => missing(),
    }
}

/// A thread to make.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct NewThreadBody {
    thread_id: Option<String>,
    assistant_id: Option<String>,
    metadata: Option<Map<String, Value>>,
    if_exists: Option<String>,
}

/// Makes a thread.
pub(super) async fn create(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<NewThreadBody>, JsonRejection>,
) -> Response {
    answer(async { made(&gateway, &caller, body(posted)?).await.map(Json) }.await)
}

async fn made(gateway: &GatewayState, caller: &Caller, asked: NewThreadBody) -> Result<Value, Refused> {
    let id = match &asked.thread_id {
        None => ThreadId::fresh(),
        Some(id) => thread::id(id)?,
    };
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let known = db.client_thread(&id).await.map_err(|error| unavailable(&error))?;
    if let Some(known) = known {
        return match (known.user == caller.user, asked.if_exists.as_deref()) {
            (true, Some("raise")) => refused(StatusCode::CONFLICT, "the thread exists"),
            (true, _) => Ok(listed(gateway, &known)),
            // Whose it is is nobody's business.
            (false, _) => refused(StatusCode::CONFLICT, "the thread's id is taken"),
        };
    }
    let metadata = notes(asked.metadata.unwrap_or_default())?;
    let new = NewThread {
        folder: ThreadFolder { owner: caller.user.clone(), thread: id.clone() },
        account: ACCOUNT.to_owned(),
        assistant: asked.assistant_id.unwrap_or_default(),
        metadata,
        now: clock::now(),
    };
    db.create_thread(new).await.map_err(|error| unavailable(&error))?;
    own(gateway, caller, id.as_str()).await.map(|thread| listed(gateway, &thread))
}

/// Writes the notes of a client, without what is not theirs to say.
fn notes(mut metadata: Map<String, Value>) -> Result<String, Refused> {
    metadata.retain(|key, _| !OWNERS.contains(&key.as_str()));
    let text = Value::Object(metadata).to_string();
    if text.len() > MAX_METADATA_BYTES {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "metadata has more than 64 KiB");
    }
    Ok(text)
}

fn metadata(thread: &ClientThread) -> Map<String, Value> {
    let mut notes: Map<String, Value> = serde_json::from_str(&thread.metadata).unwrap_or_default();
    if thread.pinned {
        notes.insert("deerflow_pinned".into(), true.into());
    }
    notes
}

/// Returns a thread's status in LangGraph's words.
fn status(gateway: &GatewayState, thread: &ClientThread) -> &'static str {
    if !gateway.0.shared.client.live_runs(&thread.id).is_empty() {
        return "busy";
    }
    match thread.outcome.as_deref().and_then(|outcome| serde_json::from_str(outcome).ok()) {
        None | Some(Outcome::Success) => "idle",
        Some(Outcome::Stopped) => "interrupted",
        Some(Outcome::Timeout | Outcome::Limit | Outcome::Error(_)) => "error",
    }
}

/// Writes a thread as lists show it: of its values only the title.
fn listed(gateway: &GatewayState, thread: &ClientThread) -> Value {
    let title = Some(&thread.title).filter(|title| !title.is_empty());
    let values = title.map_or_else(|| json!({}), |title| json!({ "title": title }));
    json!({
        "thread_id": thread.id,
        "status": status(gateway, thread),
        "created_at": clock::iso(thread.created),
        "updated_at": clock::iso(thread.updated),
        "metadata": metadata(thread),
        "assistant_id": Some(&thread.assistant).filter(|assistant| !assistant.is_empty()),
        "channel": Some(&thread.account).filter(|account| *account != ACCOUNT),
        "config": {},
        "values": values,
        "interrupts": {},
    })
}

/// Which threads are looked for.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ThreadSearch {
    metadata: Option<Map<String, Value>>,
    status: Option<String>,
    ids: Option<Vec<String>>,
    limit: Option<usize>,
    offset: Option<usize>,
    sort_by: Option<String>,
    sort_order: Option<String>,
    query: Option<String>,
}

impl ThreadSearch {
    fn fits(&self, gateway: &GatewayState, thread: &ClientThread) -> bool {
        let notes = metadata(thread);
        let mut wanted = self.metadata.iter().flatten();
        wanted.all(|(key, value)| notes.get(key) == Some(value))
            && self.status.as_ref().is_none_or(|wanted| wanted == status(gateway, thread))
            && self.ids.as_ref().is_none_or(|ids| ids.iter().any(|id| id == thread.id.as_str()))
            && self
                .query
                .as_ref()
                .is_none_or(|words| thread.title.to_lowercase().contains(&words.to_lowercase()))
    }
}

async fn found(
    gateway: &GatewayState,
    caller: &Caller,
    search: &ThreadSearch,
) -> Result<Vec<ClientThread>, Refused> {
    if let Some(status) = search.status.as_deref()
        && !["idle", "busy", "interrupted", "error"].contains(&status)
    {
        return refused(StatusCode::UNPROCESSABLE_ENTITY, "status is none of idle, busy, interrupted, error");
    }
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let (mut all, mut offset) = (Vec::new(), 0);
    loop {
        let page = db.client_threads(&caller.user, SEARCH_PAGE, offset).await;
        let page = page.map_err(|error| unavailable(&error))?;
        let is_last = page.len() < usize::try_from(SEARCH_PAGE).unwrap_or(usize::MAX);
        all.extend(page.into_iter().filter(|thread| search.fits(gateway, thread)));
        let enough = search.sort_by.is_none()
            && all.len() >= search.offset.unwrap_or(0).saturating_add(search.limit.unwrap_or(LISTED.0));
        if is_last || enough {
            break;
        }
        offset += SEARCH_PAGE;
    }
    match search.sort_by.as_deref() {
        None | Some("updated_at") => {}
        Some("created_at") => all.sort_by_key(|thread| std::cmp::Reverse(thread.created)),
        Some("thread_id") => all.sort_by(|a, b| b.id.cmp(&a.id)),
        Some("status") => all.sort_by_key(|thread| std::cmp::Reverse(status(gateway, thread))),
        Some(_) => {
            let why = "sort_by is none of thread_id, status, created_at, updated_at";
            return refused(StatusCode::UNPROCESSABLE_ENTITY, why);
        }
    }
    if search.sort_order.as_deref() == Some("asc") {
        all.reverse();
    }
    Ok(all)
}

/// Finds threads of the caller's.
pub(super) async fn search(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<ThreadSearch>, JsonRejection>,
) -> Response {
    let listed = async {
        let search = body(posted)?;
        let limit = search.limit.unwrap_or(LISTED.0);
        if !(1..=LISTED.1).contains(&limit) {
            return refused(StatusCode::UNPROCESSABLE_ENTITY, "limit is 1 to 1000");
        }
        let found = found(&gateway, &caller, &search).await?;
        let page = found.iter().skip(search.offset.unwrap_or(0)).take(limit);
        Ok(Json(page.map(|thread| listed(&gateway, thread)).collect::<Vec<_>>()))
    };
    answer(listed.await)
}

/// Counts threads of the caller's.
pub(super) async fn count(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<ThreadSearch>, JsonRejection>,
) -> Response {
    let counted = async {
        let search = ThreadSearch { limit: Some(usize::MAX), ..body(posted)? };
        Ok(Json(found(&gateway, &caller, &search).await?.len()))
    };
    answer(counted.await)
}

/// Shows a thread with its values.
pub(super) async fn show(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let shown = async {
        let thread = own(&gateway, &caller, &id).await?;
        let mut told = listed(&gateway, &thread);
        told["values"] = values(&gateway, &thread).await?;
        Ok(Json(told))
    };
    answer(shown.await)
}

/// Returns the values of a thread as it is.
pub(super) async fn values(gateway: &GatewayState, thread: &ClientThread) -> Result<Value, Refused> {
    let state = gateway.0.shared.client.state(&thread.id).await.map_err(|error| unavailable(&error))?;
    let written = ValuesWriter::default().write(&state, Some(&thread.title));
    Ok(serde_json::from_str(written.get()).unwrap_or_default())
}

/// Change of a thread's notes.
#[derive(Deserialize)]
pub(super) struct ThreadPatch {
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// Merges notes into those of a thread.
pub(super) async fn patch(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<ThreadPatch>, JsonRejection>,
) -> Response {
    let patched = async {
        let (thread, mut patch) = (own(&gateway, &caller, &id).await?, body(posted)?.metadata);
        let pinned = patch.remove("deerflow_pinned").map(|pinned| pinned == true);
        // Who only pins a thread has not used it.
        let updated = Some(clock::now()).filter(|_| !patch.is_empty() || pinned.is_none());
        let mut all = metadata(&thread);
        all.remove("deerflow_pinned");
        all.extend(patch);
        let change = ThreadChange { metadata: Some(notes(all)?), pinned, title: None, updated };
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        db.change_thread(&thread.id, change).await.map_err(|error| unavailable(&error))?;
        own(&gateway, &caller, &id).await.map(|thread| Json(listed(&gateway, &thread)))
    };
    answer(patched.await)
}

/// Deletes a thread of the caller's with all that it left behind.
pub(super) async fn delete(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let deleted = async {
        let thread = own(&gateway, &caller, &id).await?;
        let client = &gateway.0.shared.client;
        if !client.live_runs(&thread.id).is_empty() {
            return refused(StatusCode::CONFLICT, IN_FLIGHT);
        }
        match client.delete_thread(&thread.id).await.map_err(|error| unavailable(&error))? {
            Deletion::Done => {
                tracing::info!(thread = %thread.id, "deleted a thread on request");
                let message = format!("Deleted local thread data for {}", thread.id);
                Ok(Json(json!({ "success": true, "message": message })))
            }
            Deletion::InUse => refused(StatusCode::CONFLICT, IN_FLIGHT),
            Deletion::Unknown => missing(),
        }
    };
    answer(deleted.await)
}

/// Said of a thread on which something works.
pub(super) const IN_FLIGHT: &str = "the thread has work in flight; cancel its run, or say /stop in its chat";

/// Shows a thread as it is: its newest checkpoint.
pub(super) async fn state(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    answer(async { checkpoint_of(&gateway, &own(&gateway, &caller, &id).await?, None).await }.await)
}

/// Shows a thread as it was at a checkpoint.
pub(super) async fn state_at(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path((id, checkpoint)): Path<(String, String)>,
) -> Response {
    let shown = async {
        let thread = own(&gateway, &caller, &id).await?;
        let Some(seq) = checkpoint::position(&checkpoint) else { return unknown_checkpoint() };
        checkpoint_of(&gateway, &thread, Some(seq)).await
    };
    answer(shown.await)
}

/// A checkpoint to look at.
#[derive(Deserialize)]
pub(super) struct CheckpointBody {
    #[serde(default)]
    checkpoint: Value,
}

/// Shows a thread as it was at the checkpoint that the body names.
pub(super) async fn state_of_checkpoint(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<CheckpointBody>, JsonRejection>,
) -> Response {
    let shown = async {
        let (thread, posted) = (own(&gateway, &caller, &id).await?, body(posted)?);
        let wanted = checkpoint::wanted(&Value::Null, &posted.checkpoint);
        match wanted {
            Ok(seq) => checkpoint_of(&gateway, &thread, seq).await,
            Err(why) => refused(StatusCode::UNPROCESSABLE_ENTITY, &why),
        }
    };
    answer(shown.await)
}

fn unknown_checkpoint<T>() -> Result<T, Refused> {
    refused(StatusCode::NOT_FOUND, "there is no such checkpoint")
}

async fn checkpoint_of(
    gateway: &GatewayState,
    thread: &ClientThread,
    wanted: Option<Seq>,
) -> Result<Json<Map<String, Value>>, Refused> {
    let shared = &gateway.0.shared;
    let db = shared.db.within(STORE_TIMEOUT);
    let (seq, state) = match wanted {
        None => shared.client.state_now(&thread.id).await.map_err(|error| unavailable(&error))?,
        Some(seq) => {
            let found = db.state_at(&thread.id, seq).await.map_err(|error| unavailable(&error))?;
            if found.0 != seq {
                return unknown_checkpoint();
            }
            found
        }
    };
    let before =
        db.log_before(&thread.id, seq.saturating_add(1), 64).await.map_err(|error| unavailable(&error))?;
    Ok(Json(written(thread, &before, seq, &state)))
}

/// Writes a checkpoint; `before` are the rows of the log up to it, newest first.
fn written(thread: &ClientThread, before: &[LogEntry], seq: Seq, state: &ThreadState) -> Map<String, Value> {
    let made = before.first();
    let parent = boundaries(before).into_iter().find(|at| *at < seq);
    let (at, run) = made.map_or((thread.created, ""), |entry| (entry.at, entry.run.as_str()));
    let next = if waits(state) { &["model"] as &[&str] } else { &[] };
    let step = i64::try_from(state.messages.len()).unwrap_or(i64::MAX) - 1;
    let checkpoint = Checkpoint { thread: &thread.id, seq, parent, at, run, step, next };
    let values = ValuesWriter::default().write(state, Some(&thread.title));
    checkpoint.state(&values)
}

/// Returns whether a thread stands where a model comes next.
fn waits(state: &ThreadState) -> bool {
    matches!(state.last().map(AsRef::as_ref), Some(Message::Human(_))) || !state.begun.is_empty()
}

/// Returns the positions of checkpoints among rows, newest first: where a step ended.
fn boundaries(newest_first: &[LogEntry]) -> Vec<Seq> {
    let kind = |entry: &LogEntry| match &entry.update {
        Update::Message(message) => match &**message {
            Message::Human(_) => 'h',
            Message::Assistant(_) => 'a',
            Message::Tool(_) => 't',
            Message::Reminder(_) => '-',
        },
        Update::Restore(_) => 'r',
        _ => '-',
    };
    let mut found: Vec<(char, Seq)> = Vec::new();
    for entry in newest_first {
        let kind = kind(entry);
        // Of results that came together, and of what was said together, the last stands for all.
        let goes_on = found.last().is_some_and(|(last, _)| *last == kind && matches!(kind, 'h' | 't'));
        if kind != '-' && !goes_on {
            found.push((kind, entry.seq));
        }
    }
    found.into_iter().map(|(_, seq)| seq).collect()
}

/// Which checkpoints are listed.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct HistoryBody {
    limit: Option<usize>,
    before: Value,
}

/// Lists the checkpoints of a thread, newest first. Only the newest has its messages.
pub(super) async fn history(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<HistoryBody>, JsonRejection>,
) -> Response {
    answer(async { past(&gateway, &own(&gateway, &caller, &id).await?, body(posted)?).await.map(Json) }.await)
}

async fn past(
    gateway: &GatewayState,
    thread: &ClientThread,
    asked: HistoryBody,
) -> Result<Vec<Map<String, Value>>, Refused> {
    let limit = asked.limit.unwrap_or(HISTORY.0);
    if !(1..=HISTORY.1).contains(&limit) {
        return refused(StatusCode::UNPROCESSABLE_ENTITY, "limit is 1 to 100");
    }
    let before = match &asked.before {
        Value::Null => None,
        Value::String(id) => Some(checkpoint::position(id)),
        named => Some(["checkpoint_id", "configurable"].iter().find_map(|key| {
            let id = named[key].as_str().or(named["configurable"]["checkpoint_id"].as_str());
            checkpoint::position(id?)
        })),
    };
    let before = match before {
        Some(None) => return refused(StatusCode::UNPROCESSABLE_ENTITY, "before names no checkpoint"),
        Some(Some(seq)) => seq,
        None => Seq::MAX,
    };
    let (db, mut rows, mut at) = (gateway.0.shared.db.within(STORE_TIMEOUT), Vec::new(), before);
    // A step has a few rows; one more checkpoint is found for the parent of the last.
    while boundaries(&rows).len() <= limit {
        let page = db.log_before(&thread.id, at, 256).await.map_err(|error| unavailable(&error))?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        rows.extend(page);
    }
    let mut told = Vec::new();
    for seq in boundaries(&rows).into_iter().take(limit) {
        let (_, mut state) = db.state_at(&thread.id, seq).await.map_err(|error| unavailable(&error))?;
        if !told.is_empty() {
            // Each with all messages would be the square of the thread.
            let messages = std::mem::take(&mut state.messages);
            state.messages.extend(messages.into_iter().rev().take(1));
        }
        let up_to: Vec<LogEntry> = rows.iter().filter(|entry| entry.seq <= seq).take(64).cloned().collect();
        told.push(written(thread, &up_to, seq, &state));
    }
    Ok(told)
}

/// A change of a thread's values.
#[derive(Deserialize)]
pub(super) struct StateUpdate {
    #[serde(default)]
    values: Value,
    #[serde(default)]
    checkpoint: Value,
    #[serde(default)]
    checkpoint_id: Value,
}

/// Changes the values of a thread: what is named is replaced.
pub(super) async fn update_state(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<StateUpdate>, JsonRejection>,
) -> Response {
    let updated = async {
        let (thread, update) = (own(&gateway, &caller, &id).await?, body(posted)?);
        write_values(&gateway, &thread, update).await?;
        checkpoint_of(&gateway, &own(&gateway, &caller, &id).await?, None).await
    };
    answer(updated.await)
}

async fn write_values(
    gateway: &GatewayState,
    thread: &ClientThread,
    update: StateUpdate,
) -> Result<(), Refused> {
    let wrong = |why: &str| Box::new(refuse(StatusCode::UNPROCESSABLE_ENTITY, why));
    let from = checkpoint::wanted(&update.checkpoint_id, &update.checkpoint).map_err(|why| wrong(&why))?;
    let values = match update.values {
        Value::Null => Map::new(),
        Value::Object(values) => values,
        _ => return Err(wrong("values is no object")),
    };
    const KNOWN: [&str; 4] = ["messages", "title", "todos", "artifacts"];
    if let Some(unknown) = values.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(wrong(&format!("values.{unknown} cannot be written; these can: {}", KNOWN.join(", "))));
    }
    let (shared, db) = (&gateway.0.shared, gateway.0.shared.db.within(STORE_TIMEOUT));
    if let Some(title) = values.get("title") {
        let Some(title) = title.as_str().filter(|title| title.len() <= 1024) else {
            return Err(wrong("values.title is no text of at most 1024 bytes"));
        };
        let change = ThreadChange { title: Some(title.trim().to_owned()), ..ThreadChange::default() };
        db.change_thread(&thread.id, change).await.map_err(|error| unavailable(&error))?;
    }
    let messages = values
        .get("messages")
        .map(input::messages)
        .transpose()
        .map_err(|why| wrong(&format!("values.{why}")))?;
    let todos: Option<Vec<Todo>> = values
        .get("todos")
        .cloned()
        .map(serde_json::from_value)
        .transpose()
        .map_err(|error| wrong(&format!("values.todos: {error}")))?;
    let artifacts: Option<Vec<String>> = values
        .get("artifacts")
        .cloned()
        .map(serde_json::from_value)
        .transpose()
        .map_err(|error| wrong(&format!("values.artifacts: {error}")))?;
    if from.is_none() && messages.is_none() && todos.is_none() && artifacts.is_none() {
        return Ok(());
    }
    let past = match from {
        None => None,
        Some(seq) => Some(db.state_at(&thread.id, seq).await.map_err(|error| unavailable(&error))?.1),
    };
    let change = |run: &mut RunState| {
        let mut state = past.unwrap_or_else(|| run.state().clone());
        if let Some(messages) = messages {
            replace_messages(&mut state, messages);
        }
        state.todos = todos.unwrap_or(state.todos);
        if let Some(artifacts) = artifacts {
            state.artifacts = artifacts.into_iter().map(|path| (path, run.run.clone())).collect();
        }
        run.apply(Update::Restore(Arc::new(state)));
    };
    changed(shared.client.change_thread(&thread.id, change).await).map(drop)
}

/// Answers how a change of a thread went.
pub(super) fn changed<T>(done: Result<T, SubmitError>) -> Result<T, Refused> {
    match done {
        Ok(done) => Ok(done),
        Err(SubmitError::Busy(_)) => refused(StatusCode::CONFLICT, IN_FLIGHT),
        Err(SubmitError::Full) => refused(StatusCode::SERVICE_UNAVAILABLE, "too many runs wait; try again"),
        Err(SubmitError::Store(error)) => Err(unavailable(&error)),
    }
}

fn replace_messages(state: &mut ThreadState, messages: Vec<SentMessage>) {
    state.messages.clear();
    state.client_fields.clear();
    state.begun.clear();
    for SentMessage { message, fields, .. } in messages {
        let id: MessageId = message.id().clone();
        if !fields.is_null() {
            state.client_fields.insert(id.clone(), fields);
        }
        state.messages.insert(id, Arc::new(message));
    }
}

/// Makes another thread of a state, with the same notes and title.
pub(super) async fn copy_to(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ClientThread,
    (state, title, extra): (ThreadState, &str, Map<String, Value>),
) -> Result<ClientThread, Refused> {
    let (db, id) = (gateway.0.shared.db.within(STORE_TIMEOUT), ThreadId::fresh());
    let mut all = metadata(thread);
    all.remove("deerflow_pinned");
    all.extend(extra);
    let new = NewThread {
        folder: ThreadFolder { owner: caller.user.clone(), thread: id.clone() },
        account: ACCOUNT.to_owned(),
        assistant: thread.assistant.clone(),
        metadata: notes(all)?,
        now: clock::now(),
    };
    db.create_thread(new).await.map_err(|error| unavailable(&error))?;
    let change = ThreadChange { title: Some(title.to_owned()), ..ThreadChange::default() };
    db.change_thread(&id, change).await.map_err(|error: StoreError| unavailable(&error))?;
    let restore = |run: &mut RunState| run.apply(Update::Restore(Arc::new(state)));
    changed(gateway.0.shared.client.change_thread(&id, restore).await)?;
    own(gateway, caller, id.as_str()).await
}

/// Makes a copy of a thread: its messages, not its files.
pub(super) async fn copy(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    let copied = async {
        let thread = own(&gateway, &caller, &id).await?;
        let state = gateway.0.shared.client.state(&thread.id).await.map_err(|error| unavailable(&error))?;
        let copied = copy_to(&gateway, &caller, &thread, (state, &thread.title, Map::new())).await?;
        Ok(Json(listed(&gateway, &copied)))
    };
    answer(copied.await)
}
