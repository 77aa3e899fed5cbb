//! Ids of threads, and the errors about threads.

use crate::ApiError;
use pudu_client::{SubmitError, base::ThreadId};

/// Message about an invalid thread id.
pub const WRONG: &str = "a thread's id is 1 to 64 of A-Z a-z 0-9 _ -";

/// Reads a thread's id; `None` if it is none.
pub fn read(text: &str) -> Option<ThreadId> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ((1..=64).contains(&text.len()) && text.chars().all(plain)).then(|| text.into())
}

/// Reads a thread's id.
pub(crate) fn id(text: &str) -> Result<ThreadId, ApiError> {
    read(text).ok_or_else(|| ApiError::invalid(WRONG))
}

/// Returns the error about a thread that does not exist, or that the caller may not read.
pub(crate) fn missing() -> ApiError {
    ApiError::not_found("there is no such thread")
}

/// Returns the error about a thread with a run or a turn in progress.
pub(crate) fn in_flight() -> ApiError {
    ApiError::conflict("the thread has work in flight; cancel its run, or say /stop in its chat")
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Busy(_) => in_flight(),
            SubmitError::Full => Self::unavailable("too many runs wait; try again"),
            SubmitError::Store(error) => error.into(),
        }
    }
}
