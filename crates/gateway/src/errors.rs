//! Errors of the framework (no such route, another method, a body or a query that cannot be read) in the shape that our
//! own have.

use crate::json::Json;
use axum::{
    body::to_bytes,
    extract::Request,
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Maximum size of an error's text, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Gives an error in plain text, or without words, the shape of the others: `{"detail": "…"}`.
pub(super) async fn shape(request: Request, next: Next) -> Response {
    // Signed links are opened by people.
    let for_people = request.uri().path().starts_with("/files/");
    let response = next.run(request).await;
    let failed = response.status().is_client_error() || response.status().is_server_error();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let plain = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if for_people || !failed || !plain {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_TEXT_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let detail = match (text.trim(), parts.status) {
        ("", StatusCode::NOT_FOUND) => "there is nothing at this address",
        (_, StatusCode::PAYLOAD_TOO_LARGE) => "the body has more than 1 MiB, the most here",
        ("", StatusCode::METHOD_NOT_ALLOWED) => "this address does not take this method",
        ("", status) => status.canonical_reason().unwrap_or("refused"),
        (text, _) => text,
    };
    let (shaped, body) = refuse(parts.status, detail).into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(shaped.headers);
    Response::from_parts(parts, body)
}

/// An error in the form that DeerFlow's clients read.
pub(super) fn refuse(status: StatusCode, detail: &str) -> Response {
    (status, Json(serde_json::json!({ "detail": detail }))).into_response()
}
