//! Failures of a reading, and when the conversation is read again.

use super::{MAX_ATTEMPTS, MAX_BUDGET_PAUSE, RETRY_PAUSE, Reading, millis};
use crate::memory::rules::MemoryTrouble;
use pudu_base::ModelError;
use pudu_memory::extract::AnswerError;
use pudu_store::{Learning, now};

/// Reason why a conversation was not read.
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
    #[error("another reader has it by now")]
    Taken,
    /// The last reading does not wait for a model that failed: the next start reads.
    #[error("the model failed while pudu was stopping")]
    Stopping,
}

impl From<pudu_store::StoreError> for LearnError {
    fn from(error: pudu_store::StoreError) -> Self {
        Self::Memory(error.into())
    }
}

impl Reading<'_> {
    /// Notes when a conversation that could not be read is read again, or that it is given up.
    pub(super) async fn note_failure(&self, error: &LearnError) {
        let learning = self.learning.clone();
        if let LearnError::Model(ModelError::Budget(used)) = error {
            // The conversation waits until something may be spent again.
            let pause = if used.busy { RETRY_PAUSE } else { MAX_BUDGET_PAUSE };
            let due = used.opens.filter(|_| !used.busy).unwrap_or_else(|| now() + millis(pause));
            return self.put_off(Learning { due, ..learning }).await;
        }
        let attempts = learning.attempts + 1;
        tracing::warn!(thread = %learning.thread, attempts, %error, "failed to learn from conversation");
        match error {
            LearnError::Taken => {}
            LearnError::Stopping => self.put_off(learning).await,
            _ if attempts >= MAX_ATTEMPTS => self.client.give_up(&learning).await,
            _ => {
                let doublings = u32::try_from(learning.attempts).unwrap_or(0);
                let due = now() + millis(RETRY_PAUSE * 2_u32.saturating_pow(doublings));
                self.put_off(Learning { due, attempts, ..learning }).await;
            }
        }
    }
}
