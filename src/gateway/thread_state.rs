//! Threads as they are and as they were: checkpoints, which are positions of the log, and copies.

use super::{
    GatewayState,
    caller::Caller,
    errors::refuse,
    refusal::{ACCOUNT, Refusal, answer, body, changed, refused, scrubbed, unavailable},
    threads::{listed, metadata, notes, own},
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
    response::Response,
};
use pudu_client::{
    base::{Message, MessageId, Seq, ThreadFolder, ThreadId, ThreadState, Todo, Update},
    harness::RunState,
    store::{ClientThread, LogEntry, NewThread, StoreError, ThreadChange},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// So many checkpoints are listed, unless told otherwise, and at most.
const HISTORY: (usize, usize) = (10, 100);

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

fn unknown_checkpoint<T>() -> Result<T, Refusal> {
    refused(StatusCode::NOT_FOUND, "there is no such checkpoint")
}

async fn checkpoint_of(
    gateway: &GatewayState,
    thread: &ClientThread,
    wanted: Option<Seq>,
) -> Result<Response, Refusal> {
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
    Ok(scrubbed(&written(thread, &before, seq, &state)))
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
    let listed = async {
        let thread = own(&gateway, &caller, &id).await?;
        Ok(scrubbed(&past(&gateway, &thread, body(posted)?).await?))
    };
    answer(listed.await)
}

async fn past(
    gateway: &GatewayState,
    thread: &ClientThread,
    asked: HistoryBody,
) -> Result<Vec<Map<String, Value>>, Refusal> {
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
) -> Result<(), Refusal> {
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
) -> Result<ClientThread, Refusal> {
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
        Ok(scrubbed(&listed(&gateway, &copied)))
    };
    answer(copied.await)
}
