//! Files that a message contains as `data:` URLs. They are stored with the message.

use base64::{Engine, prelude::BASE64_STANDARD};
use pudu_channels::{Attachment, SendError};
use std::path::Path;

/// Writes such a file. Other URLs are not fetched, because this machine would send the request on behalf of the
/// message's author.
pub async fn download(attachment: &Attachment, to: &Path, limit: u64) -> Result<u64, SendError> {
    let Some((_, base64)) =
        attachment.handle.strip_prefix("data:").and_then(|url| url.split_once(";base64,"))
    else {
        let why = "images are not fetched from other URLs here: send them as `data:` URLs";
        return Err(SendError::Refused(why.to_owned()));
    };
    let bytes = BASE64_STANDARD
        .decode(base64)
        .map_err(|_| SendError::Refused("it is not valid base64".to_owned()))?;
    let size = bytes.len() as u64;
    if size > limit {
        return Err(SendError::TooLarge { limit });
    }
    tokio::fs::write(to, bytes).await.map_err(|error| SendError::File(error.to_string()))?;
    Ok(size)
}
