//! Files on their way from Telegram.

use super::client::{CALL_TIMEOUT, TelegramClient};
use crate::{
    SendError,
    transport::{CallError, check_size, fetch},
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

/// Fetches the file of a handle to `to`. Its size is checked as Telegram finds it, and as it comes.
pub(super) async fn file(
    client: &TelegramClient,
    handle: &str,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let found = find(client, handle).await?;
    check_size(found.file_size, limit)?;
    let path = found.file_path.ok_or_else(|| SendError::Refused("the file is not there".to_owned()))?;
    fetch(client.get_file(&path), to, limit).await
}

async fn find(client: &TelegramClient, handle: &str) -> Result<GetFileResult, SendError> {
    match client.ask(&GetFile::new(FileId(handle.to_owned())), CALL_TIMEOUT).await {
        Err(CallError::Refused(what)) if what.contains("file is too big") => {
            Err(SendError::TooLarge { limit: MAX_DOWNLOAD_BYTES })
        }
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests;
