//! Webhooks, which platforms use to deliver events. The channel verifies, decodes and stores a post. This module only
//! checks its headers and passes it on with a time limit, unless the peer fails too often.

use super::{body_limit::MAX_BODY_BYTES, failures, guests::Visitor, json::Json};
use crate::GatewayState;
use axum::{
    Extension,
    body::to_bytes,
    extract::{ConnectInfo, Path, Request},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_channels::{EventSink, Glance, WebhookRequest, WebhookResponse};
use std::{net::SocketAddr, time::Duration};
use tokio::time::{Instant, timeout};

/// Timeout for a request's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Receives a platform's post for an account.
pub(crate) async fn take(
    gateway: GatewayState,
    Path((platform, account)): Path<(String, String)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Response {
    let shared = &gateway.0.shared;
    let channel = shared.accounts.get(&account).map(|account| account.channel());
    let hook = channel.filter(|channel| channel.platform() == platform).and_then(|channel| channel.webhook());
    let Some(hook) = hook else { return StatusCode::NOT_FOUND.into_response() };
    let (parts, body) = request.into_parts();
    let (failures, peer) = (&gateway.0.failures, failures::peer(peer.ip(), &parts.headers));
    let glance = hook.glance(&parts.headers);
    // A sender that proves to be the platform is admitted despite failures from the same address.
    if glance != Glance::Proven && failures.are_too_many(peer, Instant::now()) {
        return StatusCode::TOO_MANY_REQUESTS.into_response();
    }
    let fail = |status: StatusCode| {
        failures.add(peer, Instant::now());
        status.into_response()
    };
    if glance == Glance::Foreign {
        return fail(StatusCode::UNAUTHORIZED);
    }
    let body = match timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return fail(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => return fail(StatusCode::REQUEST_TIMEOUT),
    };
    let post = WebhookRequest { headers: &parts.headers, body: &body };
    let answer = hook.handle(post, &**shared as &dyn EventSink).await;
    if matches!(answer, WebhookResponse::Taken(_)) {
        visitor.prove();
    }
    match answer {
        WebhookResponse::Taken(Some(answer)) => Json(answer).into_response(),
        WebhookResponse::Taken(None) => StatusCode::OK.into_response(),
        WebhookResponse::Forbidden => fail(StatusCode::UNAUTHORIZED),
        WebhookResponse::Garbled => fail(StatusCode::BAD_REQUEST),
        WebhookResponse::Later => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
