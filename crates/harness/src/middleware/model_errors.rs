//! Describes a model's failure for users: the cause, without secrets, and the remedy.

use super::Middleware;
use crate::RunState;
use pudu_base::{FailureCause, ModelError, RunFailure};

/// Describes a model's failure for users.
pub struct ModelErrors;

impl Middleware for ModelErrors {
    fn name(&self) -> &'static str {
        "model_errors"
    }

    fn model_failed(&mut self, _turn: &RunState, error: &ModelError) -> Option<RunFailure> {
        Some(FailureCause::from(error).into())
    }
}
