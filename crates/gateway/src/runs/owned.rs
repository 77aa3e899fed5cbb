//! Runs on threads that a caller may change or read.

use crate::{
    ApiError, Caller, GatewayState,
    openapi::NamesInPath,
    threads::owned::{ThreadPath, check_owner, path_parameter, readable},
};
use axum::{extract::FromRequestParts, http::request::Parts};
use pudu_base::{RunId, ThreadId};
use pudu_store::{ClientThread, RunRow};

/// The run in a request's path, on one of the caller's threads.
pub(crate) struct OwnRun {
    pub(crate) thread: ClientThread,
    pub(crate) row: RunRow,
}

/// The run in a request's path, on a thread that the caller may read. The path may omit the thread.
pub(crate) struct ReadableRun {
    pub(crate) thread: ClientThread,
    pub(crate) row: RunRow,
}

impl NamesInPath for OwnRun {}
impl NamesInPath for ReadableRun {}

impl FromRequestParts<GatewayState> for OwnRun {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &GatewayState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, gateway).await?;
        let ReadableRun { thread, row } = ReadableRun::from_request_parts(parts, gateway).await?;
        check_owner(&caller, &thread)?;
        Ok(Self { thread, row })
    }
}

impl FromRequestParts<GatewayState> for ReadableRun {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &GatewayState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, gateway).await?;
        let run = path_parameter(parts, gateway, "run").await?.unwrap_or_default();
        let run = RunId::from(run.as_str());
        if path_parameter(parts, gateway, "thread").await?.is_some() {
            let ThreadPath(id) = ThreadPath::from_request_parts(parts, gateway).await?;
            let thread = readable(gateway, &caller, &id).await?;
            return Ok(Self { row: row(gateway, &thread.id, &run).await?, thread });
        }
        let row = gateway.db().run(&run).await?.ok_or_else(missing)?;
        let thread = readable(gateway, &caller, &row.thread).await.map_err(|_| missing())?;
        Ok(Self { thread, row })
    }
}

/// Finds a run of a thread.
pub(crate) async fn row(gateway: &GatewayState, thread: &ThreadId, id: &RunId) -> Result<RunRow, ApiError> {
    let found = gateway.db().run(id).await?;
    found.filter(|row| row.thread == *thread).ok_or_else(missing)
}

fn missing() -> ApiError {
    ApiError::not_found("run not found")
}
