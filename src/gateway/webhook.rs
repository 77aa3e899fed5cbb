//! Where platforms deliver events by HTTP. The channel judges, decodes and keeps what is posted; here it is
//! only carried.

use super::Gateway;
use axum::{
    Json,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use pudu_channels::{Answer, Intake, Post};

/// Takes what a platform posts for an account.
pub(super) async fn take(
    State(gateway): State<Gateway>,
    Path((platform, account)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let shared = &gateway.0.shared;
    let channel = shared.accounts.get(&account).map(|account| account.channel());
    let hook = channel.filter(|channel| channel.platform() == platform).and_then(|channel| channel.webhook());
    let Some(hook) = hook else { return StatusCode::NOT_FOUND.into_response() };
    let post = Post { headers: &headers, body: &body };
    match hook.take(post, &shared.inbox as &dyn Intake).await {
        Answer::Taken(Some(answer)) => Json(answer).into_response(),
        Answer::Taken(None) => StatusCode::OK.into_response(),
        Answer::Forbidden => StatusCode::UNAUTHORIZED.into_response(),
        Answer::Garbled => StatusCode::BAD_REQUEST.into_response(),
        Answer::Later => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
