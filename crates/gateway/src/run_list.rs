//! Lists of a thread's runs.

use super::{
    GatewayState,
    caller::Caller,
    owned::readable,
    query::Query,
    refusal::{Refusal, answer, scrubbed, unavailable, wrong},
    threads::{check_selected, selected},
};
use axum::{
    extract::{Path, RawQuery, State},
    response::Response,
};
use pudu_client::{base::ThreadId, store::RunRow, wire::run};
use pudu_dispatch::bus::STORE_TIMEOUT;
use schemars::JsonSchema;
use serde::Deserialize;

/// Default and maximum number of listed runs.
const LISTED: (usize, usize) = (10, 1000);
/// Number of runs read at once.
const READ_RUNS: i64 = 100;

/// Which runs are listed.
#[derive(Deserialize, JsonSchema)]
pub(super) struct RunsQuery {
    limit: Option<usize>,
    offset: Option<usize>,
    status: Option<String>,
}

/// Lists the runs of a thread, newest first.
pub(super) async fn list(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Query(asked): Query<RunsQuery>,
    RawQuery(query): RawQuery,
) -> Response {
    let listed = async {
        // A key may occur several times, which `Query` does not read.
        let pairs = url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
        let select: Vec<String> =
            pairs.filter(|(key, _)| key == "select").map(|(_, value)| value.into_owned()).collect();
        let thread = readable(&gateway, &caller, &id).await?;
        check_selected("run", &select, &run::KEYS)?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        let rows = wanted_runs(&gateway, &thread.id, &asked).await?;
        let tokens = db.run_tokens(&thread.id, None).await.map_err(|error| unavailable(&error))?;
        Ok(scrubbed(
            &rows.iter().map(|row| selected(run::run(row, &tokens), Some(&select))).collect::<Vec<_>>(),
        ))
    };
    answer(listed.await)
}

/// Returns the page of runs that a query asks for.
async fn wanted_runs(
    gateway: &GatewayState,
    thread: &ThreadId,
    asked: &RunsQuery,
) -> Result<Vec<RunRow>, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let (limit, mut skipped) = (asked.limit.unwrap_or(LISTED.0), asked.offset.unwrap_or(0));
    if !(1..=LISTED.1).contains(&limit) {
        return wrong(&format!("limit is 1 to {}", LISTED.1));
    }
    if let Some(unknown) = asked.status.as_deref().filter(|status| !run::STATUSES.contains(status)) {
        let why = format!("status: a run is never `{unknown}`, but {}", run::STATUSES.join(", "));
        return wrong(&why);
    }
    let mut from = 0;
    let mut wanted = Vec::new();
    loop {
        let page = db.thread_runs(thread, READ_RUNS, from).await.map_err(|error| unavailable(&error))?;
        let is_last = i64::try_from(page.len()).is_ok_and(|found| found < READ_RUNS);
        for row in page {
            match asked.status.as_deref() {
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
