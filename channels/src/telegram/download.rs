//! Downloads files from Telegram.

use super::{
    client::{CALL_TIMEOUT, TelegramClient},
    facts::CAPABILITIES,
};
use crate::{
    SendError,
    transport::{CallError, check_size, fetch},
};
use serde::Deserialize;
use std::path::Path;
use teloxide_core::{payloads::GetFile, types::FileId};

#[derive(Deserialize)]
struct GetFileResult {
    file_path: Option<String>,
    file_size: Option<u64>,
}

/// Downloads the file behind a handle to `to`. Checks the size that Telegram reports, and the size of the download.
pub(super) async fn file(
    client: &TelegramClient,
    handle: &str,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let found = find(client, handle).await?;
    check_size(found.file_size, limit)?;
    let path = found.file_path.ok_or_else(|| SendError::Refused("the file does not exist".to_owned()))?;
    fetch(client.get_file(&path), to, limit).await
}

async fn find(client: &TelegramClient, handle: &str) -> Result<GetFileResult, SendError> {
    match client.ask(&GetFile::new(FileId(handle.to_owned())), CALL_TIMEOUT).await {
        Err(CallError::Refused(what)) if what.contains("file is too big") => {
            Err(SendError::TooLarge { limit: CAPABILITIES.max_download_bytes })
        }
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests;
