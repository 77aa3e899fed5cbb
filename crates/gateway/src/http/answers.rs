//! Response types shared by several routes.

use super::json::Json;
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_net::scrub;
use schemars::JsonSchema;
use serde::Serialize;

/// Confirmation of an action.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Done")]
pub(crate) struct Confirmation {
    /// Description of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Whether it was done: always true.
    success: bool,
}

impl Confirmation {
    /// Confirms an action without a description.
    pub(crate) fn silent() -> Self {
        Self { success: true, message: None }
    }

    /// Confirms an action with its description.
    pub(crate) fn with_message(message: impl Into<String>) -> Self {
        Self { success: true, message: Some(message.into()) }
    }
}

/// A message for people.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Notice")]
pub(crate) struct NoticeAnswer {
    /// The text.
    pub(crate) message: &'static str,
}

/// JSON without secrets that a tool may have found.
pub(crate) struct Scrubbed<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Scrubbed<T> {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&self.0).unwrap_or_default();
        let body = scrub::hide_in_talk(&text).into_owned();
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

/// JSON of a created object, with status 201.
pub(crate) struct Created<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}
