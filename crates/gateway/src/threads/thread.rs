//! Thread ids, and errors about threads.

use crate::ApiError;
use pudu_base::ThreadId;
use pudu_runs::SubmitError;

/// Message about an invalid thread id.
pub const INVALID_ID: &str = "a thread id must have 1 to 64 characters of A-Z a-z 0-9 _ -";

/// Parses a thread id; `None` if it is invalid.
pub fn parse(text: &str) -> Option<ThreadId> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ((1..=64).contains(&text.len()) && text.chars().all(plain)).then(|| text.into())
}

/// Parses a thread id.
pub(crate) fn id(text: &str) -> Result<ThreadId, ApiError> {
    parse(text).ok_or_else(|| ApiError::invalid(INVALID_ID))
}

/// Returns the error for a thread that does not exist, or that the caller may not read.
pub(crate) fn not_found() -> ApiError {
    ApiError::not_found("thread not found")
}

/// Returns the error about a thread with a run or a turn in progress.
pub(crate) fn in_flight() -> ApiError {
    ApiError::conflict("a run is still running on the thread; cancel it, or send /stop in its chat")
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Busy(_) => in_flight(),
            SubmitError::Full => Self::unavailable("too many runs are waiting; try again"),
            SubmitError::Store(error) => error.into(),
        }
    }
}
