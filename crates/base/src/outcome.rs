//! How runs end.

use crate::{FailureCause, RunFailure, UsedBudget};
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// With an answer.
    Success,
    /// A person stopped it. Its text so far is kept.
    Stopped,
    /// It took longer than allowed.
    Timeout,
    /// It used up its model calls.
    Limit,
    /// It failed permanently.
    Error(RunFailure),
}

impl Outcome {
    /// Returns the exhausted budget that ended it, if any.
    #[must_use]
    pub fn used_budget(&self) -> Option<&UsedBudget> {
        match self {
            Self::Error(RunFailure { cause: Some(FailureCause::Budget(used)), .. }) => Some(used),
            _ => None,
        }
    }
}

impl From<FailureCause> for Outcome {
    fn from(cause: FailureCause) -> Self {
        Self::Error(cause.into())
    }
}
