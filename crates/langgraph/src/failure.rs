//! Renders failures of runs for clients: in the last frame of a stream, and in the thread.

use pudu_base::{FailureClass, Outcome, RunFailure};
use serde_json::{Map, Value, json};

/// Returns the name and the text of the error that clients get for a failed run; `None` if it did not fail.
#[must_use]
pub fn failure(outcome: &Outcome) -> Option<(&'static str, String)> {
    match outcome {
        Outcome::Success | Outcome::Stopped => None,
        Outcome::Timeout => Some(("TimeoutError", "The run took longer than allowed.".to_owned())),
        Outcome::Limit => Some(("GraphRecursionError", "The run used up its model calls.".to_owned())),
        Outcome::Error(RunFailure { class, hint, .. }) => Some((
            match class {
                FailureClass::Unavailable => "ModelUnavailableError",
                FailureClass::Auth => "ModelAuthError",
                FailureClass::Quota => "ModelQuotaError",
                FailureClass::Rejected => "ModelRejectedError",
                FailureClass::Budget => "BudgetError",
                FailureClass::Internal => "InternalError",
            },
            hint.clone(),
        )),
    }
}

/// Adds a failure to the fields of its message, in the format of DeerFlow's answer after a model error.
pub(super) fn add(fields: &mut Map<String, Value>, outcome: &Outcome) {
    let Some((kind, text)) = failure(outcome) else { return };
    let reason = match outcome {
        Outcome::Error(RunFailure { class: FailureClass::Unavailable, .. }) => "transient",
        Outcome::Error(RunFailure { class: FailureClass::Auth, .. }) => "auth",
        Outcome::Error(RunFailure { class: FailureClass::Quota | FailureClass::Budget, .. }) => "quota",
        _ => "generic",
    };
    let extra = json!({
        "deerflow_error_fallback": true, "error_type": kind, "error_reason": reason, "error_detail": text,
    });
    fields.insert("content".into(), text.into());
    fields.insert("additional_kwargs".into(), extra);
}
