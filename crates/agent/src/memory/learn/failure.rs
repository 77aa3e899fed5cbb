//! Failures of learning, and when the conversation is read again.

use crate::memory::rules::MemoryTrouble;
use pudu_base::ModelError;
use pudu_kit::clock::millis;
use pudu_memory::extract::AnswerError;
use pudu_store::{Learning, now};
use std::time::Duration;

/// Maximum number of failures before a conversation is dropped.
const MAX_ATTEMPTS: i64 = 4;
/// Pause before a conversation is read again after a failure, doubled each time.
const RETRY_PAUSE: Duration = Duration::from_secs(60);
/// Pause before a conversation is read again if its budget is used up and never resets, like the budget of a run.
const MAX_BUDGET_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a conversation was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LearnError {
    #[error(transparent)]
    Memory(#[from] MemoryTrouble),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model's answer cannot be used: {0}")]
    Answer(#[from] AnswerError),
    #[error("the thread cannot be read: {0}")]
    Thread(String),
    #[error("another reader has claimed it")]
    Taken,
    /// The last reading does not wait for a failed model. The conversation is read after the next start.
    #[error("the model failed while pudu was stopping")]
    Stopping,
}

impl From<pudu_store::StoreError> for LearnError {
    fn from(error: pudu_store::StoreError) -> Self {
        Self::Memory(error.into())
    }
}

/// Handling of a conversation that could not be read.
#[derive(Debug)]
pub(super) enum AfterFailure {
    /// Another reader has claimed it.
    Left,
    /// It is read again when it is due.
    PutOff { due: i64, attempts: i64 },
    /// It is not read again.
    GivenUp,
}

impl LearnError {
    /// Returns whether the model can be called for other conversations. An exhausted budget affects only one user.
    pub(super) fn leaves_model(&self) -> bool {
        match self {
            Self::Model(error) => matches!(error, ModelError::Budget(_)),
            Self::Stopping => false,
            _ => true,
        }
    }
}

impl AfterFailure {
    pub(super) fn from_error(error: &LearnError, learning: &Learning) -> Self {
        if let LearnError::Model(ModelError::Budget(used)) = error {
            // The conversation waits until the budget resets, or only briefly if other calls have reserved the
            // remainder.
            let pause = if used.busy { RETRY_PAUSE } else { MAX_BUDGET_PAUSE };
            let due = used.opens.filter(|_| !used.busy).unwrap_or_else(|| now() + millis(pause));
            return Self::PutOff { due, attempts: learning.attempts };
        }
        let attempts = learning.attempts + 1;
        tracing::warn!(thread = %learning.thread, attempts, %error, "failed to learn from conversation");
        match error {
            LearnError::Taken => Self::Left,
            LearnError::Stopping => Self::PutOff { due: learning.due, attempts: learning.attempts },
            _ if attempts >= MAX_ATTEMPTS => Self::GivenUp,
            _ => {
                let doublings = u32::try_from(learning.attempts).unwrap_or(0);
                let due = now() + millis(RETRY_PAUSE * 2_u32.saturating_pow(doublings));
                Self::PutOff { due, attempts }
            }
        }
    }
}
