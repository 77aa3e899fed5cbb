//! Error responses of the API.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

/// Returns the reason for a code.
fn reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "AlreadyExists",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}

/// Returns a failure response.
pub(super) fn failure(code: u16, message: &str, details: &Value) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason(code), "details": details, "code": code,
    });
    (StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), Json(status)).into_response()
}

/// Returns the response for a missing object.
pub(super) fn missing(kind: &str, name: &str) -> Response {
    failure(404, &format!("{kind} \"{name}\" not found"), &json!({"name": name, "kind": kind}))
}

/// Returns the response for an unknown path.
pub(super) fn unknown() -> Response {
    failure(404, "the server could not find the requested resource", &json!({}))
}
