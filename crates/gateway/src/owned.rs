//! Threads belong to their users, and the members of a room read the room's threads. A thread that the caller may not
//! read is reported as missing.

use super::{
    GatewayState,
    auth::CallerProof,
    caller::Caller,
    errors::refuse,
    refusal::{Refusal, missing, refused, unavailable},
    thread,
};
use axum::{
    extract::{RawPathParams, Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use pudu_client::{base::ThreadId, store::ClientThread};
use pudu_dispatch::bus::STORE_TIMEOUT;

/// Said of a thread that the caller reads and would change.
const READ_ONLY: &str = "members of a room read its threads; write in the chat";

/// Finds a thread of the caller's.
pub(super) async fn own(gateway: &GatewayState, caller: &Caller, id: &str) -> Result<ClientThread, Refusal> {
    let thread = readable(gateway, caller, id).await?;
    match thread.user == caller.user {
        true => Ok(thread),
        false => refused(StatusCode::FORBIDDEN, READ_ONLY),
    }
}

/// Likewise; `None` if there is no thread with this id, so that a new one may have it.
pub(super) async fn own_if_there(
    gateway: &GatewayState,
    caller: &Caller,
    id: &ThreadId,
) -> Result<Option<ClientThread>, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    match db.client_thread(id).await.map_err(|error| unavailable(&error))? {
        None => Ok(None),
        Some(_) => own(gateway, caller, id.as_str()).await.map(Some),
    }
}

/// Finds a thread of the caller's, or of a room that has the caller as a member.
pub(super) async fn readable(
    gateway: &GatewayState,
    caller: &Caller,
    id: &str,
) -> Result<ClientThread, Refusal> {
    let (id, db) = (thread::id(id)?, gateway.0.shared.db.within(STORE_TIMEOUT));
    let found = db.client_thread(&id).await.map_err(|error| unavailable(&error))?;
    let Some(thread) = found else { return missing() };
    if thread.user == caller.user {
        return Ok(thread);
    }
    match db.is_thread_member(&id, &caller.user).await.map_err(|error| unavailable(&error))? {
        true => Ok(thread),
        false => missing(),
    }
}

/// Admits the owner of a thread, administrators, members of its room who only read, and callers on this machine while
/// no account exists. Files of a missing thread belong to no other user. Runs after the guard.
pub(super) async fn check(
    State(gateway): State<GatewayState>,
    params: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let extensions = request.extensions();
    let (Some(caller), Some(proof)) = (extensions.get::<Caller>(), extensions.get::<CallerProof>()) else {
        return refuse(StatusCode::UNAUTHORIZED, "nobody is known to ask");
    };
    let named = params.iter().find(|(name, _)| *name == "thread");
    let Some((_, id)) = named.filter(|_| !proof.sees_all(caller)) else { return next.run(request).await };
    let found = match request.method().is_safe() {
        true => readable(&gateway, caller, id).await,
        false => own(&gateway, caller, id).await,
    };
    match found {
        Ok(_) => next.run(request).await,
        Err(refusal) => *refusal,
    }
}
