//! Bodies of responses, with a limit.

use reqwest::{Error, Response};

/// Reads the body of a response.
///
/// # Errors
/// The result of `broken` if the connection breaks, or of `too_large`, with the number of bytes received so far, if the
/// body exceeds the limit.
pub async fn read_body<E>(
    mut response: Response,
    limit: usize,
    broken: impl Fn(Error) -> E,
    too_large: impl FnOnce(usize) -> E,
) -> Result<Vec<u8>, E> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(&broken)? {
        if body.len() + chunk.len() > limit {
            return Err(too_large(body.len() + chunk.len()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
