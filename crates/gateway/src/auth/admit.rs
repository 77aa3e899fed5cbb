//! Admission of requests: callers known to `auth/identify.rs`, the operator, and the local user.

use super::{CallerProof, caller::Caller, guard, stream_watch::StreamWatch};
use crate::{ApiError, GatewayState, auth, http::guests::Visitor};
use axum::{
    Extension,
    extract::{ConnectInfo, Request},
    middleware::Next,
    response::Response,
};
use std::net::SocketAddr;

/// Admits callers who may use the API.
pub(crate) async fn check(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(visitor): Extension<Visitor>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if gateway.0.is_another_site(request.headers(), peer.ip()) {
        return Err(guard::another_site());
    }
    let watch = StreamWatch::new(&gateway, &request, peer.ip(), &visitor);
    let shown_request = auth::ShownRequest {
        method: request.method(),
        path: request.uri().path(),
        query: request.uri().query(),
        headers: request.headers(),
        from: peer.ip(),
        visitor: &visitor,
    };
    let (caller, proof) = auth::identify(&gateway, shown_request).await?;
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(proof);
    let answer = watch.over(next.run(request).await);
    // If no proof is required, a successful request counts as the connection's proof.
    visitor.prove();
    Ok(answer)
}

/// Admits administrators, and the local user with the operator's token. Runs after [`check`].
pub(crate) async fn operator(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    Extension(proof): Extension<CallerProof>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if proof == CallerProof::Local {
        // The page's cookie counts here, because this route requires the token.
        gateway.0.guard.require_token(request.headers(), peer.ip(), &visitor).await?;
        request.extensions_mut().insert(auth::operator());
        request.extensions_mut().insert(CallerProof::Operator);
    } else if !caller.is_admin() {
        return Err(ApiError::forbidden("only administrators may do this"));
    }
    Ok(next.run(request).await)
}

/// Admits administrators, and users with an account for changes to their own data. Runs after [`check`].
pub(crate) async fn owner(
    gateway: GatewayState,
    peer: ConnectInfo<SocketAddr>,
    visitor: Extension<Visitor>,
    caller: Extension<Caller>,
    Extension(proof): Extension<CallerProof>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    match proof == CallerProof::Local || caller.is_admin() {
        true => operator(gateway, peer, visitor, caller, Extension(proof), request, next).await,
        false => Ok(next.run(request).await),
    }
}
