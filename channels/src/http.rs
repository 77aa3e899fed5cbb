//! HTTP helpers of every platform's client: answers of bounded size, and errors that tell no secret.

use pudu_net::reqwest::{Error, Response};
use std::error::Error as _;

/// Why an answer could not be read whole.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// The line broke.
    #[error("the line broke")]
    Lost(Error),
    /// There is more than was asked for.
    #[error("the answer is too large")]
    TooLarge,
}

/// Reads an answer of at most `most` bytes.
pub(crate) async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Unread::Lost)? {
        if bytes.len() + chunk.len() > most {
            return Err(Unread::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Describes an error without the URL, in which secrets may stand.
pub(crate) fn words(error: Error) -> String {
    let error = error.without_url();
    let mut text = if error.is_timeout() { "no answer in time".to_owned() } else { error.to_string() };
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
