//! What names a thread in an address.

use super::guard::refuse;
use axum::{http::StatusCode, response::Response};
use pudu_client::base::ThreadId;

/// Reads a thread's id.
pub(super) fn id(text: &str) -> Result<ThreadId, Box<Response>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=64).contains(&text.len()) && text.chars().all(plain) {
        return Ok(text.into());
    }
    let detail = "a thread's id is 1 to 64 of A-Z a-z 0-9 _ -";
    Err(Box::new(refuse(StatusCode::UNPROCESSABLE_ENTITY, detail)))
}
