//! Storage that chats use, pruning, and deletion of threads.

use crate::{
    ApiError, Confirmation, GatewayState, Json, Query,
    local::AnsweringProcess,
    threads::{lifecycle::delete_thread, owned::ThreadPath},
};
use axum::http::StatusCode;
use pudu_agent::{AccountUsage, Pruned, Retention, RetentionRules};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use pudu_store::ThreadRow;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Default number of threads listed.
pub const LISTED_THREADS: usize = 100;
/// Maximum number of threads listed.
pub const MAX_LISTED_THREADS: usize = 1_000;
/// Message about a limit out of range.
const WRONG_LIMIT: &str = "limit must be a whole number from 1 to 1000";
/// Message about a thread with unfinished work when no daemon runs.
const UNFINISHED: &str = "a run of this thread is unfinished: start pudu and let the run end";

/// Lists the storage that each account uses.
pub(crate) async fn show(gateway: GatewayState) -> Result<Json<Value>, ApiError> {
    let rules = gateway.config().retention.clone();
    let (storage, now) = (gateway.storage(), clock::now());
    let usage = match gateway.0.process {
        // The files may belong to a daemon on another machine.
        AnsweringProcess::Reader => storage.usage_as_stored(&rules, now).await?,
        AnsweringProcess::Daemon(_) | AnsweringProcess::Command => storage.usage(&rules, now).await?,
    };
    Ok(Json(to_json(&usage, &rules)))
}

/// Which threads are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadFilter {
    account: Option<String>,
    limit: Option<usize>,
}

/// Lists threads, most recently used first.
pub(crate) async fn threads(
    gateway: GatewayState,
    Query(ThreadFilter { account, limit }): Query<ThreadFilter>,
) -> Result<Json<Value>, ApiError> {
    let limit = limit.unwrap_or(LISTED_THREADS);
    if !(1..=MAX_LISTED_THREADS).contains(&limit) {
        return Err(ApiError::invalid(WRONG_LIMIT));
    }
    Ok(Json(listed(&gateway.storage().threads(account.as_deref(), limit).await?)))
}

/// Deletes the data that the retention rules do not keep.
pub(crate) async fn prune(gateway: GatewayState) -> Result<Json<Value>, ApiError> {
    let rules = gateway.config().retention.clone();
    let pruned = gateway.storage().prune(&rules, clock::now()).await?;
    log_pruned(&pruned);
    Ok(Json(counts(&pruned)))
}

/// Deletes a thread of any user.
pub(crate) async fn delete(
    gateway: GatewayState,
    ThreadPath(thread): ThreadPath,
) -> Result<Json<Confirmation>, ApiError> {
    delete_thread(&gateway, &thread).await.map_err(|error| {
        let is_unfinished = error.status() == StatusCode::CONFLICT && gateway.is_lone_command();
        if is_unfinished { ApiError::conflict(UNFINISHED) } else { error }
    })
}

impl GatewayState {
    fn storage(&self) -> pudu_agent::Storage {
        self.agent().storage().within(STORE_TIMEOUT)
    }
}

/// Renders usage in the API's format, with the rules in force.
fn to_json(usage: &[AccountUsage], rules: &RetentionRules) -> Value {
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

/// Renders threads in the API's format.
fn listed(threads: &[ThreadRow]) -> Value {
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

/// Renders rules under their configuration keys; 0 means no limit.
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

/// Renders the counts of data that was, or will be, deleted in the API's format.
fn counts(pruned: &Pruned) -> Value {
    json!({
        "threads": pruned.threads,
        "threads_without_files": pruned.stripped,
        "bytes": pruned.bytes,
        "audit_rows": pruned.audit_rows,
    })
}

/// Logs the counts of deleted data.
pub fn log_pruned(pruned: &Pruned) {
    let Pruned { threads, stripped, bytes, audit_rows } = pruned;
    tracing::info!(
        threads,
        threads_without_files = stripped,
        bytes,
        audit_rows,
        "deleted data beyond the limits of `retention`"
    );
}
