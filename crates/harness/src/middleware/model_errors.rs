//! Describes a model's failure for people: the cause, in words without secrets, and the remedy.

use super::Middleware;
use crate::RunState;
use pudu_base::{FailureClass, ModelError, RunFailure};

/// Describes a model's failure for people.
pub struct ModelErrors;

impl Middleware for ModelErrors {
    fn name(&self) -> &'static str {
        "model_errors"
    }

    fn model_failed(&mut self, _turn: &RunState, error: &ModelError) -> Option<RunFailure> {
        Some(failure(error))
    }
}

/// Describes a model's failure for people.
#[must_use]
pub fn failure(error: &ModelError) -> RunFailure {
    let (class, hint) = match error {
        ModelError::Busy { retry_after, detail } => {
            let when = match retry_after.map(|wait| wait.as_secs()) {
                Some(seconds @ 120..) => format!("in {} minutes", seconds.div_ceil(60)),
                _ => "in a moment".to_owned(),
            };
            (FailureClass::Unavailable, format!("The model is busy ({detail}). Try again {when}."))
        }
        ModelError::Unreachable(detail) => (
            FailureClass::Unavailable,
            format!("The model cannot be reached ({detail}). Try again in a moment."),
        ),
        // What cannot be read is quoted in no chat: it may be anything.
        ModelError::Garbled(_) => {
            (FailureClass::Unavailable, "The model's answer could not be read. Try again.".to_owned())
        }
        ModelError::Auth(detail) => (
            FailureClass::Auth,
            format!("The model's provider refused the key ({detail}). Whoever runs this bot has to mend it."),
        ),
        ModelError::Quota(detail) => (
            FailureClass::Quota,
            format!(
                "The model's account has no credit left ({detail}). Whoever runs this bot has to mend it."
            ),
        ),
        ModelError::NoApi(detail) => (
            FailureClass::Rejected,
            format!(
                "There is no model where I look for it ({detail}). Whoever runs this bot has to mend the \
                 model's `base_url`, which often ends in /v1; `pudu doctor` looks at it."
            ),
        ),
        ModelError::UnknownModel(detail) => (
            FailureClass::Rejected,
            format!(
                "The model's provider does not know this model ({detail}). /models lists those to choose \
                 from; whoever runs this bot has to mend its name."
            ),
        ),
        ModelError::TooLong(detail) => (
            FailureClass::Rejected,
            format!(
                "This conversation has become too long for the model ({detail}). /new starts a fresh one."
            ),
        ),
        ModelError::Filtered(_) => (
            FailureClass::Rejected,
            "The provider's content filter refused this. Say it in other words, or leave out what it may \
             have taken offence at."
                .to_owned(),
        ),
        ModelError::Rejected(detail) => (
            FailureClass::Rejected,
            format!(
                "The model's provider did not accept the request ({detail}). Asking again does not help. \
                 Whoever runs this bot has to look at the model's settings."
            ),
        ),
    };
    RunFailure { class, hint }
}
