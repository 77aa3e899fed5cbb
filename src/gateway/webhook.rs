//! Where platforms deliver events by HTTP. The channel judges secret and body; an event is answered with
//! success only when the inbox has it.

use super::Gateway;
use axum::{
    Json,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use pudu_channels::{
    Intake,
    telegram::{Delivery, Webhook, WebhookError},
};

/// A channel that takes webhooks.
pub(crate) type Hook = Webhook;

/// Takes an event of Telegram.
pub(super) async fn telegram(
    State(gateway): State<Gateway>,
    Path(account): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(hook) = gateway.0.webhooks.get(&account) else { return StatusCode::NOT_FOUND.into_response() };
    let secret = headers.get("x-telegram-bot-api-secret-token").map(|value| value.as_bytes());
    match hook.verify_and_decode(secret, &body) {
        Ok(Some(delivery)) => keep(&gateway, delivery).await,
        Ok(None) => StatusCode::OK.into_response(),
        Err(WebhookError::Forbidden) => StatusCode::UNAUTHORIZED.into_response(),
        Err(WebhookError::NotReady) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Err(WebhookError::Garbled) => StatusCode::BAD_REQUEST.into_response(),
    }
}

async fn keep(gateway: &Gateway, delivery: Delivery) -> Response {
    let response = delivery.response();
    match gateway.0.shared.inbox.accept(delivery.inbound).await {
        Ok(_) => match response {
            Some(response) => Json(response).into_response(),
            None => StatusCode::OK.into_response(),
        },
        // The platform keeps it and tries again.
        Err(error) => {
            tracing::warn!(%error, "a webhook was refused");
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}
