//! Steps of a thread's sub-agents, from its log. They have the names of DeerFlow's stored events.

use super::owned::ThreadPath;
use crate::{ApiError, GatewayState, Query, Scrubbed};
use pudu_base::Seq;
use pudu_kit::clock;
use pudu_langgraph::task;
use pudu_store::{TaskFilter, TaskRow};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Default and maximum number of listed events.
const EVENTS: (u32, u32) = (100, 500);

/// Which events are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskQuery {
    run: Option<String>,
    task: Option<String>,
    after: Option<Seq>,
    limit: Option<u32>,
}

/// Lists the events of a thread's sub-agents, oldest first.
pub(crate) async fn list(
    gateway: GatewayState,
    Query(TaskQuery { run, task, after, limit }): Query<TaskQuery>,
    ThreadPath(thread): ThreadPath,
) -> Result<Scrubbed<Value>, ApiError> {
    let filter = TaskFilter {
        run: run.map(Into::into),
        call: task.as_deref().map(Into::into),
        after: after.unwrap_or_default(),
        limit: limit.unwrap_or(EVENTS.0).clamp(1, EVENTS.1),
    };
    let (rows, next) = gateway.db().task_stages(&thread, &filter).await?;
    let events: Vec<Value> = rows.iter().filter_map(to_json).collect();
    Ok(Scrubbed(json!({ "events": events, "next": next })))
}

/// Renders a stage in the API's format.
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
