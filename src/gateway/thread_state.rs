//! Threads as they are and as they were: checkpoints, which are positions of the log.

use super::{
    GatewayState,
    caller::Caller,
    refusal::{Refusal, answer, body, refused, unavailable},
    threads::own,
    wire::checkpoint::{self, Checkpoint, ValuesWriter},
};
use crate::bus::STORE_TIMEOUT;
use axum::{
    Json,
    extract::{Path, State, rejection::JsonRejection},
    http::StatusCode,
    response::Response,
};
use pudu_client::{
    base::{Message, Seq, ThreadState, Update},
    store::{ClientThread, LogEntry},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

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
#[derive(Deserialize, JsonSchema)]
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

pub(super) async fn checkpoint_of(
    gateway: &GatewayState,
    thread: &ClientThread,
    wanted: Option<Seq>,
) -> Result<Json<Map<String, Value>>, Refusal> {
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

/// Returns the positions of checkpoints among rows, newest first: where a step ended. The newest row is one, whatever it is.
fn boundaries(newest_first: &[LogEntry]) -> Vec<Seq> {
    // What stands behind the messages of a step belongs to it, except how far calls of tools are, which comes meanwhile.
    let (mut found, mut later, mut end) = (Vec::new(), None, newest_first.first().map(|entry| entry.seq));
    for entry in newest_first {
        let step = match &entry.update {
            Update::Message(message) => match &**message {
                Message::Human(_) => Some('h'),
                Message::Assistant(_) => Some('a'),
                Message::Tool(_) => Some('t'),
                Message::Reminder(_) => None,
            },
            Update::Restore(_) => Some('r'),
            _ => None,
        };
        let is_apart = matches!(
            entry.update,
            Update::Begin(_) | Update::Interrupt(_) | Update::Suspend(_) | Update::Task { .. }
        );
        if !is_apart {
            end = end.or(Some(entry.seq));
        }
        let Some(step) = step else { continue };
        // Of results that came together, and of what was said together, the last stands for all.
        if later != Some(step) || matches!(step, 'a' | 'r') {
            found.extend(end);
        }
        (later, end) = (Some(step), None);
    }
    found
}

/// Which checkpoints are listed.
#[derive(Deserialize, Default, JsonSchema)]
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
    let newest_first: Vec<Seq> = boundaries(&rows).into_iter().take(limit).collect();
    let (Some(newest), Some(oldest)) = (newest_first.first(), newest_first.last()) else {
        return Ok(Vec::new());
    };
    let (mut reached, mut state) =
        db.state_at(&thread.id, *oldest).await.map_err(|error| unavailable(&error))?;
    let mut told = Vec::new();
    for seq in newest_first.iter().rev() {
        let behind = rows.iter().rev().filter(|entry| entry.seq > reached && entry.seq <= *seq);
        behind.for_each(|entry| state.apply(entry.update.clone()));
        reached = *seq;
        let up_to = &rows[rows.partition_point(|entry| entry.seq > *seq)..];
        // Each with all messages would be the square of the thread.
        let shown = if seq == newest { state.clone() } else { with_last_message(&state) };
        told.push(written(thread, up_to, *seq, &shown));
    }
    told.reverse();
    Ok(told)
}

fn with_last_message(state: &ThreadState) -> ThreadState {
    let last = state.messages.last().map(|(id, message)| (id.clone(), message.clone()));
    ThreadState { messages: last.into_iter().collect(), ..state.clone() }
}
