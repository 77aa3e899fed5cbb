//! Lists of a thread's runs.

use crate::{
    ApiError, GatewayState, Query, Scrubbed,
    threads::{
        owned::ReadableThread,
        search::{check_selected, selected},
    },
};
use axum::extract::RawQuery;
use pudu_base::ThreadId;
use pudu_langgraph::run;
use pudu_store::RunRow;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Default and maximum number of listed runs.
const LISTED: (usize, usize) = (10, 1000);
/// Number of runs read at once.
const READ_RUNS: i64 = 100;

/// Which runs are listed.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RunsQuery {
    limit: Option<usize>,
    offset: Option<usize>,
    status: Option<String>,
}

/// Lists the runs of a thread, newest first.
pub(crate) async fn list(
    gateway: GatewayState,
    Query(asked): Query<RunsQuery>,
    RawQuery(query): RawQuery,
    ReadableThread(thread): ReadableThread,
) -> Result<Scrubbed<Vec<Value>>, ApiError> {
    // A key may occur several times, which `Query` does not support.
    let pairs = url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let select: Vec<String> =
        pairs.filter(|(key, _)| key == "select").map(|(_, value)| value.into_owned()).collect();
    check_selected("run", &select, &run::KEYS)?;
    let rows = wanted_runs(&gateway, &thread.id, &asked).await?;
    let tokens = gateway.db().run_tokens(&thread.id, None).await?;
    Ok(Scrubbed(rows.iter().map(|row| selected(run::run(row, &tokens), Some(&select))).collect()))
}

/// Returns the page of runs that a query asks for.
async fn wanted_runs(
    gateway: &GatewayState,
    thread: &ThreadId,
    query: &RunsQuery,
) -> Result<Vec<RunRow>, ApiError> {
    let db = gateway.db();
    let (limit, mut skipped) = (query.limit.unwrap_or(LISTED.0), query.offset.unwrap_or(0));
    if !(1..=LISTED.1).contains(&limit) {
        return Err(ApiError::invalid(format!("limit must be a whole number from 1 to {}", LISTED.1)));
    }
    if let Some(unknown) = query.status.as_deref().filter(|status| !run::STATUSES.contains(status)) {
        let why =
            format!("status: unknown status `{unknown}`; the statuses are {}", run::STATUSES.join(", "));
        return Err(ApiError::invalid(why));
    }
    let mut from = 0;
    let mut wanted = Vec::new();
    loop {
        let page = db.thread_runs(thread, READ_RUNS, from).await?;
        let is_last = i64::try_from(page.len()).is_ok_and(|found| found < READ_RUNS);
        for row in page {
            match query.status.as_deref() {
                Some(status) if status != run::status(&row) => {}
                _ if skipped > 0 => skipped -= 1,
                _ => wanted.push(row),
            }
        }
        if is_last || wanted.len() >= limit {
            wanted.truncate(limit);
            return Ok(wanted);
        }
        from += READ_RUNS;
    }
}
