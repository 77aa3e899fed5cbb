//! Answers with content of threads.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use pudu_client::net::scrub;
use serde::Serialize;

/// JSON without the secrets that a tool may have found.
pub(super) struct Scrubbed<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Scrubbed<T> {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&self.0).unwrap_or_default();
        let body = scrub::hide_in_talk(&text).into_owned();
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}
