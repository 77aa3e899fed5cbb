//! The audit log of sandboxes, for the operator.

use crate::{ApiError, GatewayState, Json, Query};
use pudu_agent::killed;
use pudu_base::ThreadId;
use pudu_kit::clock;
use pudu_people::names::PeopleNames;
use pudu_store::{ABANDONED, AuditEntry, StoreError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Default and maximum number of listed entries.
pub const AUDIT_ENTRIES: (u32, u32) = (100, 1000);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AuditQuery {
    limit: Option<u32>,
    thread: Option<String>,
}

/// Lists the newest entries, newest first.
pub(crate) async fn list(
    gateway: GatewayState,
    Query(asked): Query<AuditQuery>,
) -> Result<Json<Value>, ApiError> {
    let limit = asked.limit.unwrap_or(AUDIT_ENTRIES.0).clamp(1, AUDIT_ENTRIES.1);
    let thread: Option<ThreadId> = asked.thread.map(Into::into);
    let db = gateway.db();
    let read = async { Ok((db.audit_entries(thread.as_ref(), limit).await?, PeopleNames::read(&db).await?)) };
    let (mut entries, names) = read.await.map_err(|error: StoreError| {
        tracing::error!(%error, "failed to read audit");
        ApiError::internal("the data cannot be read at the moment; try again")
    })?;
    if gateway.is_lone_command() {
        // The next daemon marks these entries in the store.
        entries
            .iter_mut()
            .filter(|entry| entry.ended.is_none())
            .for_each(|entry| entry.code = Some(ABANDONED));
    }
    let entries: Vec<Value> = entries.iter().map(|entry| to_json(entry, &names)).collect();
    Ok(Json(json!({ "deeds": entries })))
}

/// Renders an audit entry in the API's format.
fn to_json(entry: &AuditEntry, names: &PeopleNames) -> Value {
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
