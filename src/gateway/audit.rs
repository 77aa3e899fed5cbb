//! The audit log of sandboxes, for whoever runs pudu.

use super::GatewayState;
use crate::gateway::json::Json;
use crate::{bus::STORE_TIMEOUT, clock};
use axum::{
    extract::{Query, State},
    http::StatusCode,
};
use pudu_client::{killed, store::AuditEntry};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// So many deeds are told, if nothing else is asked for, and at most.
const DEEDS: (u32, u32) = (100, 1000);

#[derive(Deserialize, JsonSchema)]
pub(super) struct AuditQuery {
    limit: Option<u32>,
    thread: Option<String>,
}

/// Lists the newest deeds, the newest first.
pub(super) async fn list(
    State(gateway): State<GatewayState>,
    Query(asked): Query<AuditQuery>,
) -> (StatusCode, Json<Value>) {
    let most = asked.limit.unwrap_or(DEEDS.0).clamp(1, DEEDS.1);
    let thread = asked.thread.map(Into::into);
    match gateway.0.shared.db.within(STORE_TIMEOUT).audit_entries(thread.as_ref(), most).await {
        Ok(entries) => {
            (StatusCode::OK, Json(json!({ "deeds": entries.iter().map(told).collect::<Vec<_>>() })))
        }
        Err(error) => {
            tracing::error!(%error, "failed to read audit");
            (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "detail": "that could not be read just now" })))
        }
    }
}

/// Writes a deed as the API tells it.
pub(crate) fn told(entry: &AuditEntry) -> Value {
    let killed = entry.code.and_then(killed);
    json!({
        "at": clock::text(entry.at),
        "thread": entry.thread,
        "run": entry.run,
        "account": entry.account,
        "person": entry.person,
        "action": entry.action,
        "detail": entry.detail,
        "verdict": entry.verdict,
        "code": entry.code.filter(|_| killed.is_none()),
        "killed": killed,
        "ended": entry.ended.map(clock::text),
    })
}
