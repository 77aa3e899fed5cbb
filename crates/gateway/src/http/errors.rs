//! Errors of requests: an HTTP status, and the reason as `{"detail": …}`, the form that DeerFlow's clients read.
//!
//! Errors of the framework (no such route, another method) get the same form.

use axum::{
    Json,
    body::to_bytes,
    extract::{Request, rejection::RawPathParamsRejection},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use pudu_client::{base::LogError, store::StoreError};
use serde_json::{Value, json};
use std::fmt::Display;

/// Maximum size of an error's text, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// An error of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct ApiError {
    status: StatusCode,
    /// A sentence for people; an object with a code, or a list of places, where a program needs them.
    detail: Value,
    /// Time after which the client may try again, in seconds.
    retry_after: Option<u64>,
}

macro_rules! constructors {
    ($($name:ident $status:ident,)+) => {
        $(
            #[doc = concat!("Makes an error with the status `", stringify!($status), "`.")]
            pub(crate) fn $name(detail: impl Into<Value>) -> Self {
                Self::new(StatusCode::$status, detail)
            }
        )+
    };
}

impl ApiError {
    constructors! {
        bad_request BAD_REQUEST,
        unauthorized UNAUTHORIZED,
        forbidden FORBIDDEN,
        not_found NOT_FOUND,
        wrong_method METHOD_NOT_ALLOWED,
        timeout REQUEST_TIMEOUT,
        conflict CONFLICT,
        gone GONE,
        stale PRECONDITION_FAILED,
        too_large PAYLOAD_TOO_LARGE,
        wrong_type UNSUPPORTED_MEDIA_TYPE,
        invalid UNPROCESSABLE_ENTITY,
        too_many TOO_MANY_REQUESTS,
        internal INTERNAL_SERVER_ERROR,
        bad_gateway BAD_GATEWAY,
        unavailable SERVICE_UNAVAILABLE,
    }

    /// Makes an error.
    pub(crate) fn new(status: StatusCode, detail: impl Into<Value>) -> Self {
        Self { status, detail: detail.into(), retry_after: None }
    }

    /// Makes an error with a code for programs.
    pub(crate) fn coded(status: StatusCode, code: &str, message: &str) -> Self {
        Self::new(status, json!({ "code": code, "message": message }))
    }

    /// Logs that the store failed, and asks the client to try again.
    pub(crate) fn store(error: &dyn Display) -> Self {
        tracing::error!(%error, "failed to read or write store for a client");
        Self::unavailable("the store does not answer just now; try again")
    }

    /// Asks the client to wait this number of seconds.
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the reason as text.
    pub(crate) fn body_text(&self) -> String {
        self.detail.as_str().map_or_else(|| self.detail.to_string(), str::to_owned)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "detail": self.detail }))).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::store(&error)
    }
}

impl From<LogError> for ApiError {
    fn from(error: LogError) -> Self {
        Self::store(&error)
    }
}

/// Something failed that no client can do anything about.
impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        tracing::error!("failed to answer a request: {error:#}");
        Self::internal("that could not be done just now; the log says why")
    }
}

impl From<RawPathParamsRejection> for ApiError {
    fn from(error: RawPathParamsRejection) -> Self {
        Self::new(error.status(), error.body_text())
    }
}

/// Gives an error in plain text, or without words, the shape of the others: `{"detail": "…"}`.
pub(crate) async fn shape(request: Request, next: Next) -> Response {
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
    let (shaped, body) = ApiError::new(parts.status, detail).into_response().into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(shaped.headers);
    Response::from_parts(parts, body)
}
