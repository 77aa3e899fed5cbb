//! Answers that several routes give.

use schemars::JsonSchema;
use serde::Serialize;

/// Confirmation of an action.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Done")]
pub(super) struct Confirmation {
    /// Whether it was done: always true.
    success: bool,
    /// Description of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Confirmation {
    /// Confirms an action without a description.
    pub(super) fn silent() -> Self {
        Self { success: true, message: None }
    }

    /// Confirms an action with its description.
    pub(super) fn of(message: impl Into<String>) -> Self {
        Self { success: true, message: Some(message.into()) }
    }
}

/// A message for people.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Notice")]
pub(super) struct NoticeAnswer {
    /// The text.
    pub(super) message: &'static str,
}
