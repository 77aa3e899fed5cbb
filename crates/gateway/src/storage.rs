//! How much chats leave behind, pruning it, and deleting a thread.

use super::{
    GatewayState,
    errors::refuse,
    thread::{WRONG, read},
};
use crate::{json::Json, query::Query};
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_client::{
    AccountUsage, Pruned, Retention, RetentionRules,
    store::{Deletion, StoreError, ThreadRow},
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Default number of threads listed.
pub const LISTED_THREADS: usize = 100;
/// Maximum number of threads listed.
pub const MAX_LISTED_THREADS: usize = 1_000;
/// Message about a limit out of range.
const WRONG_LIMIT: &str = "limit is 1 to 1000";

/// Lists the storage that each account uses.
pub(super) async fn show(State(gateway): State<GatewayState>) -> Response {
    let (storage, rules) = (gateway.storage(), gateway.0.watcher.current().retention.clone());
    match storage.usage(&rules, clock::now()).await {
        Ok(usage) => Json(told(&usage, &rules)).into_response(),
        Err(error) => failed(&error),
    }
}

/// Which threads are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadFilter {
    account: Option<String>,
    limit: Option<usize>,
}

/// Lists threads, those first that were used last.
pub(super) async fn threads(
    State(gateway): State<GatewayState>,
    Query(ThreadFilter { account, limit }): Query<ThreadFilter>,
) -> Response {
    let limit = limit.unwrap_or(LISTED_THREADS);
    if !(1..=MAX_LISTED_THREADS).contains(&limit) {
        return refuse(StatusCode::UNPROCESSABLE_ENTITY, WRONG_LIMIT);
    }
    match gateway.storage().threads(account.as_deref(), limit).await {
        Ok(threads) => Json(listed(&threads)).into_response(),
        Err(error) => failed(&error),
    }
}

/// Deletes the data that the retention rules do not keep.
pub(super) async fn prune(State(gateway): State<GatewayState>) -> Response {
    let (storage, rules) = (gateway.storage(), gateway.0.watcher.current().retention.clone());
    match storage.prune(&rules, clock::now()).await {
        Ok(pruned) => {
            report(&pruned);
            Json(counts(&pruned)).into_response()
        }
        Err(error) => failed(&error),
    }
}

/// Deletes a thread with its log, its runs and its files. The answer's shape is DeerFlow's.
pub(super) async fn delete(State(gateway): State<GatewayState>, Path(thread): Path<String>) -> Response {
    let Some(id) = read(&thread) else { return refuse(StatusCode::UNPROCESSABLE_ENTITY, WRONG) };
    match gateway.0.shared.client.delete_thread(&id).await {
        Ok(Deletion::Done) => {
            tracing::info!(thread = %id, "deleted a thread on request");
            let message = format!("Deleted local thread data for {id}");
            Json(json!({ "success": true, "message": message })).into_response()
        }
        Ok(Deletion::InUse) => {
            refuse(StatusCode::CONFLICT, "the thread has work in flight; /stop in its chat ends that")
        }
        Ok(Deletion::Unknown) => refuse(StatusCode::NOT_FOUND, "there is no such thread"),
        Err(error) => failed(&error),
    }
}

impl GatewayState {
    fn storage(&self) -> pudu_client::Storage {
        self.0.shared.client.storage().within(STORE_TIMEOUT)
    }
}

/// Writes usage in the API's format, with the rules in force.
pub fn told(usage: &[AccountUsage], rules: &RetentionRules) -> Value {
    let account = |usage: &AccountUsage| {
        json!({
            "account": usage.account,
            "threads": usage.threads,
            "log_bytes": usage.log_bytes,
            "file_bytes": usage.file_bytes,
            "oldest": usage.oldest.map(clock::text),
            "audit_rows": usage.audit_rows,
            "retention": retention(&usage.retention),
            "due": counts(&usage.due),
        })
    };
    let accounts: Vec<Value> = usage.iter().map(account).collect();
    json!({ "retention": retention(&rules.usual), "accounts": accounts })
}

/// Writes threads in the API's format.
pub fn listed(threads: &[ThreadRow]) -> Value {
    let thread = |row: &ThreadRow| {
        json!({
            "id": row.id,
            "account": row.account,
            "title": Some(&row.title).filter(|title| !title.is_empty()),
            "created": clock::text(row.created),
            "updated": clock::text(row.updated),
            "log_bytes": row.log_bytes,
            "file_bytes": row.file_bytes,
        })
    };
    json!({ "threads": threads.iter().map(thread).collect::<Vec<_>>() })
}

/// Writes rules under the keys that they have in the configuration; 0 sets no limit.
fn retention(retention: &Retention) -> Value {
    let days = |age: Option<Duration>| age.map_or(0, |age| age.as_secs() / (24 * 60 * 60));
    let Retention { threads, files, audit_age, audit_rows } = retention;
    json!({
        "threads_max_age_days": days(threads.age),
        "threads_max_bytes": threads.bytes.unwrap_or(0),
        "files_max_age_days": days(files.age),
        "files_max_bytes": files.bytes.unwrap_or(0),
        "audit_max_age_days": days(*audit_age),
        "audit_max_rows": audit_rows.unwrap_or(0),
    })
}

/// Writes the counts of data that was deleted, or is to be, in the API's format.
pub fn counts(pruned: &Pruned) -> Value {
    json!({
        "threads": pruned.threads,
        "threads_without_files": pruned.stripped,
        "bytes": pruned.bytes,
        "audit_rows": pruned.audit_rows,
    })
}

/// Logs the counts of deleted data.
pub fn report(pruned: &Pruned) {
    let Pruned { threads, stripped, bytes, audit_rows } = pruned;
    tracing::info!(
        threads,
        threads_without_files = stripped,
        bytes,
        audit_rows,
        "deleted what `retention` does not keep"
    );
}

fn failed(error: &StoreError) -> Response {
    tracing::error!(%error, "failed to look after the storage");
    refuse(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer just now; try again")
}
