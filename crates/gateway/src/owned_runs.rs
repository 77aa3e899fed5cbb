//! Runs of the threads that a caller may change or read.

use super::{
    GatewayState,
    caller::Caller,
    owned::{own, readable},
    refusal::{Refusal, refused, unavailable},
};
use axum::http::StatusCode;
use pudu_client::{
    base::{RunId, ThreadId},
    store::{ClientThread, RunRow},
};
use pudu_dispatch::bus::STORE_TIMEOUT;

/// Finds a run of a thread.
pub(super) async fn row(gateway: &GatewayState, thread: &ThreadId, id: &RunId) -> Result<RunRow, Refusal> {
    let found =
        gateway.0.shared.db.within(STORE_TIMEOUT).run(id).await.map_err(|error| unavailable(&error))?;
    match found.filter(|row| row.thread == *thread) {
        Some(row) => Ok(row),
        None => refused(StatusCode::NOT_FOUND, "there is no such run"),
    }
}

/// Finds a run of a thread of the caller's.
pub(super) async fn own_run(
    gateway: &GatewayState,
    caller: &Caller,
    (thread, id): &(String, String),
) -> Result<(ClientThread, RunRow), Refusal> {
    let thread = own(gateway, caller, thread).await?;
    let row = row(gateway, &thread.id, &id.as_str().into()).await?;
    Ok((thread, row))
}

/// Finds a run of a thread that the caller may read.
pub(super) async fn readable_run(
    gateway: &GatewayState,
    caller: &Caller,
    (thread, id): &(String, String),
) -> Result<(ClientThread, RunRow), Refusal> {
    let thread = readable(gateway, caller, thread).await?;
    let row = row(gateway, &thread.id, &id.as_str().into()).await?;
    Ok((thread, row))
}

/// Finds a run of a thread that the caller may read, by the id of the run alone.
pub(super) async fn readable_by_id(
    gateway: &GatewayState,
    caller: &Caller,
    id: &str,
) -> Result<(ClientThread, RunRow), Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let found = db.run(&id.into()).await.map_err(|error| unavailable(&error))?;
    let unknown = "there is no such run";
    let Some(found) = found else { return refused(StatusCode::NOT_FOUND, unknown) };
    match readable(gateway, caller, found.thread.as_str()).await {
        Ok(thread) => Ok((thread, found)),
        Err(_) => refused(StatusCode::NOT_FOUND, unknown),
    }
}
