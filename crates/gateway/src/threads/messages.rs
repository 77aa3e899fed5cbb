//! Pages of a thread's messages and events.

use super::owned::ReadableThread;
use crate::{
    ApiError, Caller, GatewayState, Query, Scrubbed,
    runs::{changes, owned::ReadableRun},
};
use pudu_base::{RunId, Seq, ThreadState};
use pudu_langgraph::{
    event::{self, Event, ListedFeedback},
    run,
};
use pudu_store::{ClientThread, LogEntry};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// Default and maximum number of listed rows.
const MESSAGES: (usize, usize) = (50, 200);
const EVENTS: (usize, usize) = (500, 2000);
/// Number of log rows read at once.
const PAGE: i64 = 512;

/// Which rows are listed.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub(crate) struct RowsQuery {
    limit: Option<usize>,
    before_seq: Option<i64>,
    after_seq: Option<i64>,
    event_types: Option<String>,
    task_id: Option<String>,
}

/// A page of rows, oldest first, and whether more rows follow in its direction.
struct RowPage {
    events: Vec<Event>,
    has_more: bool,
}

async fn logged(
    gateway: &GatewayState,
    thread: &ClientThread,
    before: Seq,
) -> Result<Vec<LogEntry>, ApiError> {
    Ok(gateway.db().log_before(&thread.id, before, PAGE).await?)
}

async fn state(gateway: &GatewayState, thread: &ClientThread) -> Result<ThreadState, ApiError> {
    Ok(gateway.agent().state(&thread.id).await?)
}

/// Returns the newest messages of a thread before an event number, each once and without removed ones.
async fn newest_before(
    gateway: &GatewayState,
    thread: &ClientThread,
    before: Option<i64>,
    limit: usize,
    run: Option<&RunId>,
) -> Result<RowPage, ApiError> {
    let state = state(gateway, thread).await?;
    let before = before.unwrap_or(i64::MAX);
    let (mut events, mut seen, mut at) = (Vec::new(), HashSet::new(), Seq::MAX);
    'pages: loop {
        let page = logged(gateway, thread, at).await?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        for entry in &page {
            for event in event::of_row(thread.id.as_str(), entry, &state).into_iter().rev() {
                let Some(message) = &event.message else { continue };
                // If a message was rewritten, its newest row counts. Removed messages do not.
                let is_shown = state.messages.contains_key(message) && seen.insert(message.clone());
                if is_shown && event.number < before && run.is_none_or(|run| entry.run == *run) {
                    events.push(event);
                }
                if events.len() > limit {
                    break 'pages;
                }
            }
        }
    }
    let has_more = events.len() > limit;
    events.truncate(limit);
    events.reverse();
    Ok(RowPage { events, has_more })
}

/// Returns the messages that a query selects: a page backwards, or with `after_seq` a page forwards.
async fn selected(
    gateway: &GatewayState,
    thread: &ClientThread,
    query: &RowsQuery,
    run: Option<&RunId>,
) -> Result<RowPage, ApiError> {
    let limit = limit(query, MESSAGES)?;
    let Some(after) = query.after_seq else {
        return newest_before(gateway, thread, query.before_seq, limit, run).await;
    };
    let mut page = newest_before(gateway, thread, query.before_seq, usize::MAX - 1, run).await?;
    page.events.retain(|event| event.number > after);
    page.has_more = page.events.len() > limit;
    page.events.truncate(limit);
    Ok(page)
}

/// Adds the caller's feedback to message rows, and the duration of each run to its last answer. Rows copied from
/// another thread, or whose run was deleted, name no run.
async fn dressed(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ClientThread,
    events: Vec<Event>,
) -> Result<Vec<Value>, ApiError> {
    let db = gateway.db();
    let judged = db.feedback(&thread.id, &caller.user).await?;
    let judged: HashMap<&str, Value> =
        judged.iter().map(|one| (one.run.as_str(), json!(ListedFeedback::from(one)))).collect();
    let times = db.run_times(&thread.id).await?;
    let took: HashMap<String, Option<i64>> =
        times.into_iter().map(|(run, took)| (run.to_string(), took.map(|took| took / 1000))).collect();
    let mut last: HashSet<String> = HashSet::new();
    let mut rows: Vec<Value> = Vec::new();
    for event in events.into_iter().rev() {
        let mut row = event.told;
        let run = row["run_id"].as_str().unwrap_or_default().to_owned();
        row["user_id"] = json!(thread.user);
        row["feedback"] = Value::Null;
        if event.kind == "llm.ai.response" && last.insert(run.clone()) {
            row["feedback"] = judged.get(run.as_str()).cloned().unwrap_or_default();
            if let Some(Some(seconds)) = took.get(&run) {
                row["content"]["additional_kwargs"]["turn_duration"] = (*seconds).into();
            }
        }
        if !took.contains_key(&run) {
            row["run_id"] = Value::Null;
        }
        rows.push(row);
    }
    rows.reverse();
    Ok(rows)
}

fn limit(query: &RowsQuery, (usual, most): (usize, usize)) -> Result<usize, ApiError> {
    match query.limit.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(ApiError::invalid(format!("limit must be a whole number from 1 to {most}"))),
    }
}

/// Lists the messages of a thread, newest page first.
pub(crate) async fn page(
    gateway: GatewayState,
    caller: Caller,
    Query(asked): Query<RowsQuery>,
    ReadableThread(thread): ReadableThread,
) -> Result<Scrubbed<Value>, ApiError> {
    if asked.after_seq.is_some() {
        return Err(ApiError::invalid("pages go from new to old: send before_seq"));
    }
    let RowPage { events, has_more } = selected(&gateway, &thread, &asked, None).await?;
    let next = events.first().map(|event| event.number).filter(|_| has_more);
    let data = dressed(&gateway, &caller, &thread, events).await?;
    Ok(Scrubbed(json!({ "data": data, "has_more": has_more, "next_before_seq": next })))
}

/// Lists the messages of a thread as a plain array.
pub(crate) async fn list(
    gateway: GatewayState,
    caller: Caller,
    Query(asked): Query<RowsQuery>,
    ReadableThread(thread): ReadableThread,
) -> Result<Scrubbed<Vec<Value>>, ApiError> {
    let RowPage { events, .. } = selected(&gateway, &thread, &asked, None).await?;
    dressed(&gateway, &caller, &thread, events).await.map(Scrubbed)
}

/// Lists the messages of a run.
pub(crate) async fn of_run(
    gateway: GatewayState,
    caller: Caller,
    Query(asked): Query<RowsQuery>,
    ReadableRun { thread, row }: ReadableRun,
) -> Result<Scrubbed<Value>, ApiError> {
    let RowPage { events, has_more } = selected(&gateway, &thread, &asked, Some(&row.id)).await?;
    let data = dressed(&gateway, &caller, &thread, events).await?;
    Ok(Scrubbed(json!({ "data": data, "has_more": has_more })))
}

/// Lists the events of a run, oldest first.
pub(crate) async fn events(
    gateway: GatewayState,
    Query(asked): Query<RowsQuery>,
    ReadableRun { thread, row }: ReadableRun,
) -> Result<Scrubbed<Vec<Value>>, ApiError> {
    let limit = limit(&asked, EVENTS)?;
    let db = gateway.db();
    let Some((first, last)) = db.span_of_run(&thread.id, &row.id).await? else {
        return Ok(Scrubbed(Vec::new()));
    };
    let state = state(&gateway, &thread).await?;
    let matches = |event: &Event| {
        let kinds = asked.event_types.as_deref();
        kinds.is_none_or(|kinds| kinds.split(',').any(|kind| kind == event.kind))
            && asked.task_id.as_ref().is_none_or(|task| event.told["metadata"]["task_id"] == task.as_str())
            && asked.after_seq.is_none_or(|after| event.number > after)
    };
    let changed = changes::summary(&gateway, &thread.id, &row.id).await?;
    let [begun, changed, ended] = event::edges(&row, run::status(&row), changed, first, last);
    let mut found: Vec<Event> = begun.into_iter().filter(|event| matches(event)).collect();
    let mut at = asked.after_seq.map_or(0, |after| event::row_of(after) - 1);
    while found.len() <= limit {
        let page = db.log_after(&thread.id, Some(&row.id), at, PAGE).await?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        let events = page.iter().flat_map(|entry| event::of_row(thread.id.as_str(), entry, &state));
        found.extend(events.filter(|event| matches(event)));
    }
    found.extend([changed, ended].into_iter().flatten().filter(|event| matches(event)));
    let owned = |event: Event| {
        let mut row = event.told;
        row["user_id"] = json!(thread.user);
        row
    };
    Ok(Scrubbed(found.into_iter().take(limit).map(owned).collect()))
}
