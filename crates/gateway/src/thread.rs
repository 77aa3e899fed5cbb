//! The thread's id in an address.

use super::errors::refuse;
use axum::{http::StatusCode, response::Response};
use pudu_client::base::ThreadId;

/// Message about an invalid thread id.
pub const WRONG: &str = "a thread's id is 1 to 64 of A-Z a-z 0-9 _ -";

/// Reads a thread's id; `None` if it is none.
pub fn read(text: &str) -> Option<ThreadId> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ((1..=64).contains(&text.len()) && text.chars().all(plain)).then(|| text.into())
}

/// Reads a thread's id, or refuses it.
pub(super) fn id(text: &str) -> Result<ThreadId, Box<Response>> {
    read(text).ok_or_else(|| Box::new(refuse(StatusCode::UNPROCESSABLE_ENTITY, WRONG)))
}
