//! Current and earlier states of threads: checkpoints, which are positions in the log.

use super::owned::ReadableThread;
use crate::{ApiError, GatewayState, Json, Scrubbed};
use axum::extract::Path;
use pudu_base::{RunId, Seq, ThreadState};
use pudu_langgraph::{
    checkpoint::{self, Checkpoint, ValuesWriter},
    steps::{Steps, restores},
};
use pudu_store::{ClientThread, LogEntry};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Default and maximum number of listed checkpoints. LangGraph's hook requests 1,000.
const HISTORY: (usize, usize) = (10, 1000);

/// A checkpoint as clients get it.
pub(crate) type ShownCheckpoint = Scrubbed<Map<String, Value>>;

/// Shows the current state of a thread: its newest checkpoint.
pub(crate) async fn state(
    gateway: GatewayState,
    ReadableThread(thread): ReadableThread,
) -> Result<ShownCheckpoint, ApiError> {
    checkpoint_of(&gateway, &thread, None).await
}

/// Shows the state of a thread at a checkpoint.
pub(crate) async fn state_at(
    gateway: GatewayState,
    ReadableThread(thread): ReadableThread,
    Path((_, checkpoint)): Path<(String, String)>,
) -> Result<ShownCheckpoint, ApiError> {
    let seq = checkpoint::position(&checkpoint).ok_or_else(unknown_checkpoint)?;
    checkpoint_of(&gateway, &thread, Some(seq)).await
}

/// A checkpoint to show.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CheckpointBody {
    #[serde(default)]
    checkpoint: Value,
}

/// Shows the state of a thread at the checkpoint in the body.
pub(crate) async fn state_of_checkpoint(
    gateway: GatewayState,
    ReadableThread(thread): ReadableThread,
    Json(posted): Json<CheckpointBody>,
) -> Result<ShownCheckpoint, ApiError> {
    let seq = checkpoint::wanted(&Value::Null, &posted.checkpoint).map_err(ApiError::invalid)?;
    checkpoint_of(&gateway, &thread, seq).await
}

/// Returns the error about a checkpoint that does not exist.
pub(crate) fn unknown_checkpoint() -> ApiError {
    ApiError::not_found("checkpoint not found")
}

/// Shows a checkpoint of a thread; the newest if none is named.
pub(crate) async fn checkpoint_of(
    gateway: &GatewayState,
    thread: &ClientThread,
    wanted: Option<Seq>,
) -> Result<ShownCheckpoint, ApiError> {
    let db = gateway.db();
    let (seq, state) = match wanted {
        None => gateway.agent().state_now(&thread.id).await?,
        Some(seq) => db.state_at(&thread.id, seq).await?,
    };
    if wanted.is_some_and(|wanted| wanted != seq) {
        return Err(unknown_checkpoint());
    }
    let before = db.log_before(&thread.id, seq.saturating_add(1), 64).await?;
    let made_by = match before.first() {
        Some(entry) => db.run(&entry.run).await?,
        None => None,
    };
    let runs: HashSet<RunId> =
        made_by.filter(|run| run.thread == thread.id).map(|run| run.id).into_iter().collect();
    let parent = gateway.runs().steps_at(&thread.id, seq).await?.parent();
    let rows = CheckpointRows { thread, runs: &runs, step: &before, parent, seq };
    Ok(Scrubbed(written(rows, state, true)))
}

/// Stored data of a checkpoint.
#[derive(Clone, Copy)]
struct CheckpointRows<'a> {
    thread: &'a ClientThread,
    /// Runs that clients can request. Rows written or copied by a client belong to none.
    runs: &'a HashSet<RunId>,
    /// Rows of the step, newest first, and possibly earlier ones.
    step: &'a [LogEntry],
    parent: Option<Seq>,
    seq: Seq,
}

/// Renders a checkpoint with all its messages, or only the last one.
fn written(rows: CheckpointRows<'_>, mut state: ThreadState, all_messages: bool) -> Map<String, Value> {
    let CheckpointRows { thread, runs, step, parent, seq } = rows;
    let first_entry = step.first();
    let at = first_entry.map_or(thread.created, |entry| entry.at);
    let run = first_entry.and_then(|entry| runs.get(&entry.run)).map_or("", RunId::as_str);
    let written = first_entry.is_some_and(|entry| restores(step).contains(&(&entry.run, entry.at)));
    let (step, next) = (checkpoint::step(&state), checkpoint::next(&state));
    let checkpoint = Checkpoint { thread: &thread.id, seq, parent, at, run, step, written, next };
    if !all_messages {
        let messages = std::mem::take(&mut state.messages);
        state.messages.extend(messages.into_iter().rev().take(1));
    }
    let values = ValuesWriter::default().write(&state, Some(&thread.title));
    checkpoint.state(&values)
}

/// Returns the positions of checkpoints among rows, newest first: the end of each step, and always the newest row.
fn boundaries(newest_first: &[LogEntry]) -> Vec<Seq> {
    let newest = newest_first.first().map(|entry| entry.seq);
    newest.map(|newest| Steps::from_rows(newest_first).ends(newest)).unwrap_or_default()
}

/// Which checkpoints are listed.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HistoryBody {
    limit: Option<usize>,
    before: Value,
    metadata: Option<Map<String, Value>>,
    checkpoint: Option<Map<String, Value>>,
}

/// Lists the checkpoints of a thread, newest first. Only the newest contains all its messages.
pub(crate) async fn history(
    gateway: GatewayState,
    ReadableThread(thread): ReadableThread,
    Json(asked): Json<HistoryBody>,
) -> Result<Scrubbed<Vec<Map<String, Value>>>, ApiError> {
    past(&gateway, &thread, asked).await.map(Scrubbed)
}

/// Returns checkpoints of a thread, newest first.
pub(crate) async fn past(
    gateway: &GatewayState,
    thread: &ClientThread,
    body: HistoryBody,
) -> Result<Vec<Map<String, Value>>, ApiError> {
    let limit = body.limit.unwrap_or(HISTORY.0);
    if !(1..=HISTORY.1).contains(&limit) {
        return Err(ApiError::invalid("limit must be a whole number from 1 to 1000"));
    }
    if body.metadata.iter().any(|metadata| !metadata.is_empty()) {
        let why = "metadata: checkpoints cannot be searched by metadata; page through them with `before`";
        return Err(ApiError::invalid(why));
    }
    // There is only one namespace, the empty one.
    let mut named = body.checkpoint.iter().flatten().filter(|(key, _)| *key != "thread_id");
    if named.any(|(_, value)| !value.is_null() && value != "") {
        return Err(ApiError::invalid("checkpoint: send its checkpoint_id as `before`"));
    }
    let before = match &body.before {
        Value::Null => None,
        Value::String(id) => Some(checkpoint::position(id)),
        named => Some(["checkpoint_id", "configurable"].iter().find_map(|key| {
            let id = named[key].as_str().or(named["configurable"]["checkpoint_id"].as_str());
            checkpoint::position(id?)
        })),
    };
    let before = match before {
        Some(None) => return Err(ApiError::invalid("before is not a checkpoint of this thread")),
        Some(Some(seq)) => seq,
        None => Seq::MAX,
    };
    // Includes the checkpoint's own row: otherwise the row before it would count as the end of a step.
    let (db, mut rows, mut at) = (gateway.db(), Vec::new(), before.saturating_add(1));
    let earlier = |rows: &[LogEntry]| -> Vec<Seq> {
        boundaries(rows).into_iter().filter(|seq| *seq < before).collect()
    };
    // A step has only a few rows. One more checkpoint than requested is read: the parent of the last one.
    while earlier(&rows).len() <= limit {
        let page = db.log_before(&thread.id, at, 256).await?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        rows.extend(page);
    }
    let found = earlier(&rows);
    let newest_first = &found[..found.len().min(limit)];
    let Some(oldest) = newest_first.last() else { return Ok(Vec::new()) };
    let (_, mut state) = db.state_at(&thread.id, *oldest).await?;
    let runs = db.run_times(&thread.id).await?;
    let runs: HashSet<RunId> = runs.into_iter().map(|(run, _)| run).collect();
    let row_at = |seq: Seq| rows.partition_point(|entry| entry.seq > seq);
    let mut entries = Vec::new();
    for (at, seq) in newest_first.iter().enumerate().rev() {
        let parent = found.get(at + 1).copied();
        let step = &rows[row_at(*seq)..parent.map_or(rows.len(), row_at)];
        if seq != oldest {
            step.iter().rev().for_each(|entry| state.apply(entry.update.clone()));
        }
        // Including all messages each time would be quadratic in the length of the thread.
        let rows = CheckpointRows { thread, runs: &runs, step, parent, seq: *seq };
        entries.push(written(rows, state.clone(), at == 0));
    }
    entries.reverse();
    if limit == 1 {
        // The hook of LangGraph's SDK sends this checkpoint back with each new message. After a stop, or in a second
        // tab, it is no longer the newest, and the new message would drop the later ones. DeerFlow's list omits
        // checkpoints, too.
        entries.iter_mut().for_each(|entry| {
            entry.remove("checkpoint");
        });
    }
    Ok(entries)
}
