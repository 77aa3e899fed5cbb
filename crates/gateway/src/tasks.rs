//! Steps of the sub-agents of a thread, from its log. The names are those of DeerFlow's stored events.

use super::{
    GatewayState,
    refusal::{answer, scrubbed, unavailable},
    thread,
};
use crate::query::Query;
use axum::{
    extract::{Path, State},
    response::Response,
};
use pudu_client::{
    base::Seq,
    store::{TaskFilter, TaskRow},
    wire::task,
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Default and maximum number of listed events.
const EVENTS: (u32, u32) = (100, 500);

/// Which events are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskQuery {
    run: Option<String>,
    task: Option<String>,
    after: Option<Seq>,
    limit: Option<u32>,
}

/// Lists the events of a thread's sub-agents, oldest first.
pub(super) async fn list(
    State(gateway): State<GatewayState>,
    Path(thread): Path<String>,
    Query(TaskQuery { run, task, after, limit }): Query<TaskQuery>,
) -> Response {
    let thread = match thread::id(&thread) {
        Ok(thread) => thread,
        Err(refused) => return *refused,
    };
    let filter = TaskFilter {
        run: run.map(Into::into),
        call: task.as_deref().map(Into::into),
        after: after.unwrap_or_default(),
        limit: limit.unwrap_or(EVENTS.0).clamp(1, EVENTS.1),
    };
    let listed = gateway.0.shared.db.within(STORE_TIMEOUT).task_stages(&thread, &filter).await;
    answer(listed.map_err(|error| unavailable(&error)).map(|(rows, next)| {
        let events: Vec<Value> = rows.iter().filter_map(to_json).collect();
        scrubbed(&json!({ "events": events, "next": next }))
    }))
}

/// Writes a stage in the API's format.
fn to_json(row: &TaskRow) -> Option<Value> {
    let (name, content, metadata) = task::stored(&row.call, &row.stage)?;
    Some(json!({
        "seq": row.seq,
        "run_id": row.run,
        "event_type": name,
        "category": "subagent",
        "content": content,
        "metadata": metadata,
        "created_at": clock::text(row.at),
    }))
}
