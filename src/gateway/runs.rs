//! The runs that work, and their events, for programs that want more than a chat shows.

use super::{GatewayState, errors::refuse};
use crate::gateway::json::Json;
use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{Stream, stream};
use pudu_client::{
    base::{RunEvent, RunId},
    harness::{Gap, Progress, ReplayItem, ReplayReader},
    net::scrub,
};
use serde_json::{Value, json};
use std::{convert::Infallible, time::Duration};
use tokio_util::sync::CancellationToken;

/// Lists the runs that work or wait to, oldest first.
pub(super) async fn list(State(gateway): State<GatewayState>) -> Json<Value> {
    let runs = gateway.0.shared.client.runs();
    let entry = |(run, replay): &(RunId, std::sync::Arc<pudu_client::harness::Replay>)| json!({ "run_id": run, "progress": progress(&replay.progress()) });
    Json(json!({ "runs": runs.iter().map(entry).collect::<Vec<_>>() }))
}

/// Follows a run's events; with `Last-Event-ID`, from the one behind it on. A reader that has fallen out of
/// the ring gets a `gap` with all that happened so far, and goes on from there.
pub(super) async fn events(
    State(gateway): State<GatewayState>,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(replay) = gateway.0.shared.client.replay(&run.into()) else {
        return refuse(StatusCode::NOT_FOUND, "there is no such run, or it ended more than a minute ago");
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<u64>().ok());
    let reader = replay.read(last.map_or(0, |last| last.saturating_add(1)));
    let keep = KeepAlive::new().interval(Duration::from_secs(15)).text("heartbeat");
    let following = follow(reader, gateway.0.stop.clone());
    ([("x-accel-buffering", "no")], Sse::new(following).keep_alive(keep)).into_response()
}

fn follow(reader: ReplayReader, stop: CancellationToken) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold((reader, stop), |(mut reader, stop)| async move {
        loop {
            let item = stop.run_until_cancelled(reader.next()).await??;
            // What is in these is more than chats show.
            if !matches!(&item, ReplayItem::Event(_, event) if matches!(**event, RunEvent::Committed { .. } | RunEvent::Reasoning { .. }))
            {
                return Some((Ok(event(&item)), (reader, stop)));
            }
        }
    })
}

fn event(item: &ReplayItem) -> Event {
    match item {
        ReplayItem::Event(id, happened) => {
            let data = serde_json::to_value(&**happened).unwrap_or_default();
            let name = data.get("type").and_then(Value::as_str).unwrap_or("event").to_owned();
            Event::default().id(id.to_string()).event(name).data(shown(&data))
        }
        ReplayItem::Gap(Gap { missed, next, progress: so_far }) => {
            let data = json!({ "missed": missed, "next": next, "progress": progress(so_far) });
            Event::default().id(next.saturating_sub(1).to_string()).event("gap").data(shown(&data))
        }
    }
}

/// Writes an answer of the API. A tool may have found a secret of pudu's own, which a model's words or a sub-agent's steps
/// repeat.
pub(super) fn shown(answer: &Value) -> String {
    scrub::hide_in_talk(&answer.to_string()).into_owned()
}

fn progress(progress: &Progress) -> Value {
    json!({
        "text": progress.text,
        "activity": progress.activity,
        "artifacts": progress.artifacts,
        "todos": progress.todos,
        "usage": progress.usage,
        "outcome": progress.outcome,
    })
}
