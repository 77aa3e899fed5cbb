//! Errors of requests: an HTTP status, and the reason as `{"detail": …}`, the format that DeerFlow's clients read.
//!
//! Errors of the framework (unknown route, wrong method) get the same format.

use axum::{
    Json,
    body::to_bytes,
    extract::{Request, rejection::RawPathParamsRejection},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use pudu_base::LogError;
use pudu_store::StoreError;
use serde_json::{Value, json};
use std::fmt::Display;

/// Maximum size of an error's text, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// An error of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct ApiError {
    status: StatusCode,
    /// A sentence for people, or for programs an object with a code or a list of locations.
    detail: Value,
    /// How long the client should wait before it tries again, in seconds.
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

    /// Creates an error.
    pub(crate) fn new(status: StatusCode, detail: impl Into<Value>) -> Self {
        Self { status, detail: detail.into(), retry_after: None }
    }

    /// Creates an error with a code for programs.
    pub(crate) fn coded(status: StatusCode, code: &str, message: &str) -> Self {
        Self::new(status, json!({ "code": code, "message": message }))
    }

    /// Logs that the store failed, and asks the client to try again.
    pub(crate) fn store(error: &dyn Display) -> Self {
        tracing::error!(%error, "failed to read or write store for a client");
        Self::unavailable("the database does not respond at the moment; try again")
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
        let text = self.detail.as_str().or(self.detail["message"].as_str());
        text.map_or_else(|| self.detail.to_string(), str::to_owned)
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

/// An internal failure, which the client cannot fix.
impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        tracing::error!("failed to answer a request: {error:#}");
        Self::internal("the request failed; see the log for the reason")
    }
}

impl From<RawPathParamsRejection> for ApiError {
    fn from(error: RawPathParamsRejection) -> Self {
        Self::new(error.status(), error.body_text())
    }
}

/// Converts an error in plain text or without a body into the usual format: `{"detail": "…"}`.
pub(crate) async fn shape(request: Request, next: Next) -> Response {
    // People open signed links in a browser, so those errors stay plain text.
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
        ("", StatusCode::NOT_FOUND) => "not found: no route has this path",
        (_, StatusCode::PAYLOAD_TOO_LARGE) => "the body is too large; the limit here is 1 MiB",
        ("", StatusCode::METHOD_NOT_ALLOWED) => "method not allowed here",
        ("", status) => status.canonical_reason().unwrap_or("refused"),
        (text, _) => text,
    };
    let (shaped, body) = ApiError::new(parts.status, detail).into_response().into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(shaped.headers);
    Response::from_parts(parts, body)
}
