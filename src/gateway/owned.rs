//! Threads belong to their users: whoever asks for files of a thread of somebody else's hears that there is none.

use super::{GatewayState, auth::Proof, caller::Caller, errors::refuse, thread};
use crate::bus::STORE_TIMEOUT;
use axum::{
    extract::{RawPathParams, Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};

/// Lets through whose thread it is, administrators, and whoever is of this machine as long as nobody has an account. Files of a thread
/// that is not there are nobody else's. Comes behind the guard.
pub(super) async fn check(
    State(gateway): State<GatewayState>,
    params: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let extensions = request.extensions();
    let (Some(caller), Some(proof)) = (extensions.get::<Caller>(), extensions.get::<Proof>()) else {
        return refuse(StatusCode::UNAUTHORIZED, "nobody is known to ask");
    };
    let named = params.iter().find(|(name, _)| *name == "thread").and_then(|(_, id)| thread::read(id));
    // What is no thread's id is refused by name.
    let Some(id) = named.filter(|_| !proof.sees_all(caller)) else { return next.run(request).await };
    match gateway.0.shared.db.within(STORE_TIMEOUT).client_thread(&id).await {
        Ok(Some(thread)) if thread.user == caller.user => next.run(request).await,
        Ok(_) => refuse(StatusCode::NOT_FOUND, "there is no such thread"),
        Err(error) => {
            tracing::error!(%error, "failed to look up whose a thread is");
            refuse(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer: try again in a moment")
        }
    }
}
