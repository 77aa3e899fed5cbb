//! Rows of a thread's messages and events, through which clients page.

use super::{
    GatewayState,
    caller::Caller,
    changes,
    owned::readable,
    owned_runs::{readable_by_id, readable_run},
    refusal::{Refusal, answer, scrubbed, unavailable, wrong},
};
use crate::query::Query;
use axum::{
    extract::{Path, State},
    response::Response,
};
use pudu_client::{
    base::{RunId, Seq, ThreadState},
    store::{ClientThread, LogEntry, RunRow},
    wire::{
        event::{self, Event},
        run,
    },
};
use pudu_dispatch::bus::STORE_TIMEOUT;
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
pub(super) struct RowsQuery {
    limit: Option<usize>,
    before_seq: Option<i64>,
    after_seq: Option<i64>,
    event_types: Option<String>,
    task_id: Option<String>,
}

/// A page of rows, oldest first, and whether there are more in its direction.
struct RowPage {
    events: Vec<Event>,
    has_more: bool,
}

async fn logged(
    gateway: &GatewayState,
    thread: &ClientThread,
    before: Seq,
) -> Result<Vec<LogEntry>, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    db.log_before(&thread.id, before, PAGE).await.map_err(|error| unavailable(&error))
}

async fn state(gateway: &GatewayState, thread: &ClientThread) -> Result<ThreadState, Refusal> {
    gateway.0.shared.client.state(&thread.id).await.map_err(|error| unavailable(&error))
}

/// Returns the newest messages of a thread before a number: those that it contains now, each once.
async fn shown(
    gateway: &GatewayState,
    thread: &ClientThread,
    (before, limit): (Option<i64>, usize),
    run: Option<&RunId>,
) -> Result<RowPage, Refusal> {
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
                // Of a message that was written again the newest counts, and those that were taken back do not.
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

/// Returns the messages that a query asks for: a page backwards, or with `after_seq` a page forwards.
async fn selected(
    gateway: &GatewayState,
    thread: &ClientThread,
    asked: &RowsQuery,
    run: Option<&RunId>,
) -> Result<RowPage, Refusal> {
    let limit = limit(asked, MESSAGES)?;
    let Some(after) = asked.after_seq else {
        return shown(gateway, thread, (asked.before_seq, limit), run).await;
    };
    let mut page = shown(gateway, thread, (asked.before_seq, usize::MAX - 1), run).await?;
    page.events.retain(|event| event.number > after);
    page.has_more = page.events.len() > limit;
    page.events.truncate(limit);
    Ok(page)
}

/// Adds the caller's feedback to rows of messages, and the duration of each run to its last answer. A row that was
/// copied from another thread, or whose run is forgotten, names none.
async fn dressed(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ClientThread,
    events: Vec<Event>,
) -> Result<Vec<Value>, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let judged = db.feedback(&thread.id, &caller.user).await.map_err(|error| unavailable(&error))?;
    let judged: HashMap<&str, Value> =
        judged.iter().map(|one| (one.run.as_str(), event::feedback(one))).collect();
    let times = db.run_times(&thread.id).await.map_err(|error| unavailable(&error))?;
    let took: HashMap<String, Option<i64>> =
        times.into_iter().map(|(run, took)| (run.to_string(), took.map(|took| took / 1000))).collect();
    let mut last: HashSet<String> = HashSet::new();
    let mut rows: Vec<Value> = Vec::new();
    for event in events.into_iter().rev() {
        let mut told = event.told;
        let run = told["run_id"].as_str().unwrap_or_default().to_owned();
        told["feedback"] = Value::Null;
        if event.kind == "llm.ai.response" && last.insert(run.clone()) {
            told["feedback"] = judged.get(run.as_str()).cloned().unwrap_or_default();
            if let Some(Some(seconds)) = took.get(&run) {
                told["content"]["additional_kwargs"]["turn_duration"] = (*seconds).into();
            }
        }
        if !took.contains_key(&run) {
            told["run_id"] = Value::Null;
        }
        rows.push(told);
    }
    rows.reverse();
    Ok(rows)
}

fn limit(asked: &RowsQuery, (usual, most): (usize, usize)) -> Result<usize, Refusal> {
    match asked.limit.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => wrong(&format!("limit is 1 to {most}")),
    }
}

/// Lists the messages of a thread, the newest page first.
pub(super) async fn page(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Query(asked): Query<RowsQuery>,
) -> Response {
    let listed = async {
        let thread = readable(&gateway, &caller, &id).await?;
        if asked.after_seq.is_some() {
            return wrong("pages go back: send before_seq");
        }
        let RowPage { events, has_more } = selected(&gateway, &thread, &asked, None).await?;
        let next = events.first().map(|event| event.number).filter(|_| has_more);
        let data = dressed(&gateway, &caller, &thread, events).await?;
        Ok(scrubbed(&json!({ "data": data, "has_more": has_more, "next_before_seq": next })))
    };
    answer(listed.await)
}

/// Lists the messages of a thread as a bare list.
pub(super) async fn list(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Query(asked): Query<RowsQuery>,
) -> Response {
    let listed = async {
        let thread = readable(&gateway, &caller, &id).await?;
        let RowPage { events, .. } = selected(&gateway, &thread, &asked, None).await?;
        Ok(scrubbed(&dressed(&gateway, &caller, &thread, events).await?))
    };
    answer(listed.await)
}

/// Lists the messages of a run.
pub(super) async fn of_run(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
    Query(asked): Query<RowsQuery>,
) -> Response {
    answer(
        async { run_page(&gateway, &caller, readable_run(&gateway, &caller, &ids).await?, asked).await }
            .await,
    )
}

/// Likewise, of a run whose thread is not named.
pub(super) async fn of_stateless_run(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Query(asked): Query<RowsQuery>,
) -> Response {
    let listed = async {
        let found = readable_by_id(&gateway, &caller, &id).await?;
        run_page(&gateway, &caller, found, asked).await
    };
    answer(listed.await)
}

async fn run_page(
    gateway: &GatewayState,
    caller: &Caller,
    (thread, run): (ClientThread, RunRow),
    asked: RowsQuery,
) -> Result<Response, Refusal> {
    let RowPage { events, has_more } = selected(gateway, &thread, &asked, Some(&run.id)).await?;
    let data = dressed(gateway, caller, &thread, events).await?;
    Ok(scrubbed(&json!({ "data": data, "has_more": has_more })))
}

/// Lists the events of a run, oldest first.
pub(super) async fn events(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
    Query(asked): Query<RowsQuery>,
) -> Response {
    answer(
        async {
            let run = readable_run(&gateway, &caller, &ids).await?;
            Ok(scrubbed(&run_events(&gateway, run, asked).await?))
        }
        .await,
    )
}

async fn run_events(
    gateway: &GatewayState,
    (thread, row): (ClientThread, RunRow),
    asked: RowsQuery,
) -> Result<Vec<Value>, Refusal> {
    let limit = limit(&asked, EVENTS)?;
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let span = db.span_of_run(&thread.id, &row.id).await.map_err(|error| unavailable(&error))?;
    let Some((first, last)) = span else { return Ok(Vec::new()) };
    let state = state(gateway, &thread).await?;
    let wanted = |event: &Event| {
        let kinds = asked.event_types.as_deref();
        kinds.is_none_or(|kinds| kinds.split(',').any(|kind| kind == event.kind))
            && asked.task_id.as_ref().is_none_or(|task| event.told["metadata"]["task_id"] == task.as_str())
            && asked.after_seq.is_none_or(|after| event.number > after)
    };
    let changed = changes::summary(gateway, &thread.id, &row.id).await?;
    let [begun, changed, ended] = event::edges(&row, run::status(&row), changed, first, last);
    let mut found: Vec<Event> = begun.into_iter().filter(|event| wanted(event)).collect();
    let mut at = asked.after_seq.map_or(0, |after| event::row_of(after) - 1);
    while found.len() <= limit {
        let page =
            db.log_after(&thread.id, Some(&row.id), at, PAGE).await.map_err(|error| unavailable(&error))?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        let events = page.iter().flat_map(|entry| event::of_row(thread.id.as_str(), entry, &state));
        found.extend(events.filter(|event| wanted(event)));
    }
    found.extend([changed, ended].into_iter().flatten().filter(|event| wanted(event)));
    Ok(found.into_iter().take(limit).map(|event| event.told).collect())
}
