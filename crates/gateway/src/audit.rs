//! The audit log of sandboxes, for the operator.

use super::GatewayState;
use crate::{json::Json, query::Query};
use axum::{extract::State, http::StatusCode};
use pudu_client::{
    base::ThreadId,
    killed,
    store::{AuditEntry, Db, StoreError},
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use pudu_people::names::PeopleNames;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Default and maximum number of listed entries.
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
    let thread: Option<ThreadId> = asked.thread.map(Into::into);
    match listed(&gateway.0.shared.db.within(STORE_TIMEOUT), thread.as_ref(), most).await {
        Ok(deeds) => (StatusCode::OK, Json(json!({ "deeds": deeds }))),
        Err(error) => {
            tracing::error!(%error, "failed to read audit");
            (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "detail": "that could not be read just now" })))
        }
    }
}

/// Reads the newest audit entries in the API's format.
async fn listed(db: &Db, thread: Option<&ThreadId>, most: u32) -> Result<Vec<Value>, StoreError> {
    let (entries, names) = (db.audit_entries(thread, most).await?, PeopleNames::read(db).await?);
    Ok(entries.iter().map(|entry| told(entry, &names)).collect())
}

/// Writes an audit entry in the API's format.
pub fn told(entry: &AuditEntry, names: &PeopleNames) -> Value {
    let killed = entry.code.and_then(killed);
    json!({
        "at": clock::text(entry.at),
        "thread": entry.thread,
        "run": entry.run,
        "account": entry.account,
        "person": entry.person,
        "name": names.name(&entry.account, &entry.person),
        "action": entry.action,
        "detail": entry.detail,
        "verdict": names.verdict(&entry.account, &entry.verdict),
        "code": entry.code.filter(|_| killed.is_none()),
        "killed": killed,
        "ended": entry.ended.map(clock::text),
    })
}
