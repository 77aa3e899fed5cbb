//! Downloads files of messages, streamed to disk. A file is available only through its message.

use super::{chat_cache::plain, client::FeishuClient, facts::CAPABILITIES};
use crate::{SendError, transport::save};
use std::path::Path;

/// Downloads the file behind a handle, of at most `limit` bytes, to `to`.
pub(super) async fn file(
    client: &FeishuClient,
    handle: &str,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let path = path(handle).ok_or_else(|| SendError::Refused("the file does not exist".to_owned()))?;
    let response = match client.fetch(&path, limit).await {
        Err(failure) if failure.code() == Some(234_037) => {
            return Err(SendError::TooLarge { limit: CAPABILITIES.max_download_bytes });
        }
        result => result?,
    };
    save(response, to, limit).await
}

/// Returns the API path of a file. Its handle has the form `message/type/key`.
fn path(handle: &str) -> Option<String> {
    let mut parts = handle.split('/');
    let (message, kind, key) = (plain(parts.next()?)?, parts.next()?, plain(parts.next()?)?);
    let known = matches!(kind, "image" | "file") && parts.next().is_none();
    known.then(|| format!("im/v1/messages/{message}/resources/{key}?type={kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_handles_become_paths() {
        let good = "im/v1/messages/om_1/resources/img_2?type=image";
        assert_eq!(path("om_1/image/img_2").as_deref(), Some(good));
        for handle in ["", "om_1", "om_1/image", "om_1/verse/k", "om_1/file/../x", "om_1/file/a?b", "/file/k"]
        {
            assert_eq!(path(handle), None, "{handle}");
        }
    }
}
