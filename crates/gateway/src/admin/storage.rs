//! How much chats leave behind, pruning it, and deleting a thread.

use crate::{
    ApiError, Confirmation, GatewayState, Json, Query,
    threads::{lifecycle::delete_thread, owned::ThreadPath},
};
use pudu_client::{AccountUsage, Pruned, Retention, RetentionRules, store::ThreadRow};
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
pub(crate) async fn show(gateway: GatewayState) -> Result<Json<Value>, ApiError> {
    let rules = gateway.config().retention.clone();
    let usage = gateway.storage().usage(&rules, clock::now()).await?;
    Ok(Json(to_json(&usage, &rules)))
}

/// Which threads are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadFilter {
    account: Option<String>,
    limit: Option<usize>,
}

/// Lists threads, those first that were used last.
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
    report(&pruned);
    Ok(Json(counts(&pruned)))
}

/// Deletes a thread of any user.
pub(crate) async fn delete(
    gateway: GatewayState,
    ThreadPath(thread): ThreadPath,
) -> Result<Json<Confirmation>, ApiError> {
    delete_thread(&gateway, &thread).await
}

impl GatewayState {
    fn storage(&self) -> pudu_client::Storage {
        self.client().storage().within(STORE_TIMEOUT)
    }
}

/// Writes usage in the API's format, with the rules in force.
pub fn to_json(usage: &[AccountUsage], rules: &RetentionRules) -> Value {
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
