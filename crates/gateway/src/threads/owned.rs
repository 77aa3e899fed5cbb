//! Access checks for threads: they belong to their users, and members of a room can read the room's threads. A thread
//! that the caller may not read is reported as missing.

use super::thread;
use crate::{ApiError, Caller, GatewayState, auth::CallerProof, openapi::NamesInPath};
use axum::{
    extract::{FromRequestParts, RawPathParams, Request},
    http::request::Parts,
    middleware::Next,
    response::Response,
};
use pudu_base::ThreadId;
use pudu_store::ClientThread;

/// The id of the thread in a request's path, with any owner.
pub(crate) struct ThreadPath(pub(crate) ThreadId);

/// The thread in a request's path, which belongs to the caller.
pub(crate) struct OwnThread(pub(crate) ClientThread);

/// The thread id in a request's path. The thread belongs to the caller or does not exist yet.
pub(crate) struct UsableThread(pub(crate) ThreadId);

/// The thread in a request's path, which the caller may read.
pub(crate) struct ReadableThread(pub(crate) ClientThread);

impl NamesInPath for ThreadPath {}
impl NamesInPath for OwnThread {}
impl NamesInPath for ReadableThread {}
impl NamesInPath for UsableThread {}

impl FromRequestParts<GatewayState> for ThreadPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &GatewayState) -> Result<Self, ApiError> {
        let id = path_parameter(parts, gateway, "thread").await?;
        thread::id(&id.unwrap_or_default()).map(Self)
    }
}

impl FromRequestParts<GatewayState> for OwnThread {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &GatewayState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, gateway).await?;
        let ThreadPath(id) = ThreadPath::from_request_parts(parts, gateway).await?;
        own(gateway, &caller, &id).await.map(Self)
    }
}

impl FromRequestParts<GatewayState> for ReadableThread {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &GatewayState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, gateway).await?;
        let ThreadPath(id) = ThreadPath::from_request_parts(parts, gateway).await?;
        readable(gateway, &caller, &id).await.map(Self)
    }
}

impl FromRequestParts<GatewayState> for UsableThread {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &GatewayState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, gateway).await?;
        let ThreadPath(id) = ThreadPath::from_request_parts(parts, gateway).await?;
        own_if_there(gateway, &caller, &id).await?;
        Ok(Self(id))
    }
}

/// Returns a parameter of the path; `None` if the route does not have it.
pub(crate) async fn path_parameter(
    parts: &mut Parts,
    gateway: &GatewayState,
    name: &str,
) -> Result<Option<String>, ApiError> {
    let all = RawPathParams::from_request_parts(parts, gateway).await?;
    Ok(all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned()))
}

/// Finds one of the caller's threads.
pub(crate) async fn own(
    gateway: &GatewayState,
    caller: &Caller,
    id: &ThreadId,
) -> Result<ClientThread, ApiError> {
    let thread = readable(gateway, caller, id).await?;
    check_owner(caller, &thread)?;
    Ok(thread)
}

/// Finds one of the caller's threads; `None` if the id is unused, so that a new thread may have it.
pub(crate) async fn own_if_there(
    gateway: &GatewayState,
    caller: &Caller,
    id: &ThreadId,
) -> Result<Option<ClientThread>, ApiError> {
    match gateway.db().client_thread(id).await? {
        None => Ok(None),
        Some(_) => own(gateway, caller, id).await.map(Some),
    }
}

/// Finds one of the caller's threads, or a thread of a room that they are a member of.
pub(crate) async fn readable(
    gateway: &GatewayState,
    caller: &Caller,
    id: &ThreadId,
) -> Result<ClientThread, ApiError> {
    let db = gateway.db();
    let thread = db.client_thread(id).await?.ok_or_else(thread::not_found)?;
    if thread.user == caller.user || db.is_thread_member(id, &caller.user).await? {
        return Ok(thread);
    }
    Err(thread::not_found())
}

/// Refuses a caller who may only read a thread.
pub(crate) fn check_owner(caller: &Caller, thread: &ClientThread) -> Result<(), ApiError> {
    match thread.user == caller.user {
        true => Ok(()),
        false => {
            Err(ApiError::forbidden("members of a group chat can only read its threads; write in the chat"))
        }
    }
}

/// Admits the owner of a thread, and members of its room for reading. Administrators, and callers on this machine while
/// no account exists, are admitted for any thread. For other callers, a missing thread is an error. Runs after the
/// guard.
pub(crate) async fn check(
    gateway: GatewayState,
    caller: Caller,
    params: RawPathParams,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let proof = request.extensions().get::<CallerProof>();
    let sees_all = proof.is_some_and(|proof| proof.sees_all(&caller));
    let thread_param = params.iter().find(|(name, _)| *name == "thread");
    if let Some((_, id)) = thread_param.filter(|_| !sees_all) {
        let id = thread::id(id)?;
        match request.method().is_safe() {
            true => readable(&gateway, &caller, &id).await?,
            false => own(&gateway, &caller, &id).await?,
        };
    }
    Ok(next.run(request).await)
}
