//! Files on their way from Telegram, never more of them than was asked for.

use super::{
    api::TelegramCallError,
    client::{CALL_TIMEOUT, TelegramClient},
};
use crate::{
    Attachment, SendError,
    fetch::{self, check},
};
use serde::Deserialize;
use std::path::Path;
use teloxide_core::{payloads::GetFile, types::FileId};

/// Maximum size of a file that Telegram hands out to a bot, in bytes.
pub(super) const MAX_DOWNLOAD_BYTES: u64 = 20_000_000;

#[derive(Deserialize)]
struct GetFileResult {
    file_path: Option<String>,
    file_size: Option<u64>,
}

/// Fetches a file to `to`, which is made. Its size is checked as the message declares it, as Telegram finds
/// it, and as it comes.
pub(super) async fn file(
    client: &TelegramClient,
    attachment: &Attachment,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let limit = limit.min(MAX_DOWNLOAD_BYTES);
    check(attachment.size, limit)?;
    let found = find(client, &attachment.handle).await?;
    check(found.file_size, limit)?;
    let path = found.file_path.ok_or_else(|| SendError::Refused("the file is not there".to_owned()))?;
    stream(client, &path, to, limit).await
}

async fn find(client: &TelegramClient, handle: &str) -> Result<GetFileResult, SendError> {
    match client.ask(&GetFile::new(FileId(handle.to_owned())), CALL_TIMEOUT).await {
        Err(TelegramCallError::Refused(what)) if what.contains("file is too big") => {
            Err(SendError::TooLarge { limit: MAX_DOWNLOAD_BYTES })
        }
        result => Ok(result?),
    }
}

async fn stream(client: &TelegramClient, path: &str, to: &Path, limit: u64) -> Result<u64, SendError> {
    let lost = |error| SendError::Unreachable(client.describe(error));
    let request = client.http().get(client.file_url(path)?).timeout(fetch::patience(limit));
    let response = request.send().await.map_err(lost)?;
    let status = response.status();
    if status.is_client_error() {
        return Err(SendError::Refused(format!("the file cannot be fetched (HTTP {})", status.as_u16())));
    } else if !status.is_success() {
        return Err(SendError::Unreachable(format!("the file cannot be fetched (HTTP {})", status.as_u16())));
    }
    check(response.content_length(), limit)?;
    fetch::keep(response.bytes_stream(), to, limit, lost).await
}

#[cfg(test)]
mod tests;
