//! Files changed by a run, for people and the web frontend.

use super::owned::ReadableRun;
use crate::{ApiError, GatewayState, Query, Scrubbed};
use pudu_base::{RunId, SandboxError, ThreadId};
use pudu_sandbox::{
    MAX_COMPARED_BYTES, MAX_DIFF_BYTES, MAX_LISTED_FILES, MAX_SCANNED_FILES, WorkspaceChanges,
};
use pudu_store::RunRow;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Details to include in a list of changes.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub(crate) struct ChangesQuery {
    include_files: Option<bool>,
    include_diff: Option<bool>,
}

/// Returns the changes of a run.
pub(crate) async fn show(
    gateway: GatewayState,
    Query(asked): Query<ChangesQuery>,
    ReadableRun { thread, row }: ReadableRun,
) -> Result<Scrubbed<Value>, ApiError> {
    let (changes, reason) = match recorded(&gateway, &thread.id, &row.id).await? {
        RunChanges::Changes(changes) => (changes, None),
        RunChanges::Nothing => (WorkspaceChanges::default(), Some(missing(&row))),
        RunChanges::Elsewhere => (WorkspaceChanges::default(), Some(ELSEWHERE)),
    };
    Ok(Scrubbed(to_json(changes, reason, &asked)))
}

const ELSEWHERE: &str = "the sandbox files are not on this machine";

/// Returns the reason why no changes of a run are recorded.
fn missing(run: &RunRow) -> &'static str {
    match run.ended {
        None => "the run is still running",
        Some(_) => {
            "no changes are recorded: the run called no tool that can change files, or the record was deleted"
        }
    }
}

/// Changes of a run, if they are known.
enum RunChanges {
    Changes(WorkspaceChanges),
    Nothing,
    Elsewhere,
}

async fn recorded(gateway: &GatewayState, thread: &ThreadId, run: &RunId) -> Result<RunChanges, ApiError> {
    let failed = |error: SandboxError| ApiError::store(&error);
    let records = gateway.agent().change_records(thread).await.map_err(failed)?;
    let Some(records) = records else { return Ok(RunChanges::Elsewhere) };
    let changes = records.read_changes(run).await.map_err(failed)?;
    Ok(changes.map_or(RunChanges::Nothing, RunChanges::Changes))
}

/// Returns the summary of a run's changes, if it made any.
pub(crate) async fn summary(
    gateway: &GatewayState,
    thread: &ThreadId,
    run: &RunId,
) -> Result<Option<Value>, ApiError> {
    let RunChanges::Changes(changes) = recorded(gateway, thread, run).await? else { return Ok(None) };
    let query = ChangesQuery { include_files: Some(false), include_diff: None };
    Ok((!changes.files.is_empty()).then(|| to_json(changes, None, &query)))
}

fn to_json(changes: WorkspaceChanges, reason: Option<&str>, query: &ChangesQuery) -> Value {
    let mut files = if query.include_files == Some(false) { Vec::new() } else { changes.files };
    if query.include_diff == Some(false) {
        files.iter_mut().for_each(|file| file.diff = None);
    }
    json!({
        "available": reason.is_none(),
        "reason": reason,
        "version": 1,
        "summary": changes.summary,
        "files": files,
        "limits": {
            "max_files": MAX_LISTED_FILES,
            "max_scanned_files": MAX_SCANNED_FILES,
            "max_file_bytes_for_diff": MAX_COMPARED_BYTES,
            "max_total_diff_bytes": MAX_DIFF_BYTES,
        },
    })
}
