//! Files on their way from Telegram, never more of them than was asked for.

use super::{
    api::CallError,
    client::{Client, PATIENCE},
};
use crate::{Attachment, SendError};
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use teloxide_core::{payloads::GetFile, types::FileId};
use tokio::{
    fs::{File, OpenOptions},
    io::AsyncWriteExt,
};

/// The largest file that Telegram hands out to a bot, in bytes.
pub(super) const LARGEST: u64 = 20_000_000;
/// A line slower than this many bytes a second is taken for dead.
const SLOWEST: u64 = 50_000;

#[derive(Deserialize)]
struct Found {
    file_path: Option<String>,
    file_size: Option<u64>,
}

/// Fetches a file to `to`, which is made. Its size is checked as the message declares it, as Telegram finds
/// it, and as it comes.
pub(super) async fn fetch(
    client: &Client,
    attachment: &Attachment,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let limit = limit.min(LARGEST);
    check(attachment.size, limit)?;
    let found = find(client, &attachment.handle).await?;
    check(found.file_size, limit)?;
    let path = found.file_path.ok_or_else(|| SendError::Refused("the file is not there".to_owned()))?;
    let mut file = create(to).await?;
    let unfinished = Unfinished(Some(to.to_owned()));
    let size = stream(client, &path, &mut file, limit).await?;
    unfinished.keep();
    Ok(size)
}

fn check(size: Option<u64>, limit: u64) -> Result<(), SendError> {
    if size.is_some_and(|size| size > limit) { Err(SendError::TooLarge { limit }) } else { Ok(()) }
}

async fn find(client: &Client, handle: &str) -> Result<Found, SendError> {
    match client.ask(&GetFile::new(FileId(handle.to_owned())), PATIENCE).await {
        Err(CallError::Refused(what)) if what.contains("file is too big") => {
            Err(SendError::TooLarge { limit: LARGEST })
        }
        result => Ok(result?),
    }
}

async fn create(to: &Path) -> Result<File, SendError> {
    OpenOptions::new().write(true).create_new(true).open(to).await.map_err(local)
}

async fn stream(client: &Client, path: &str, to: &mut File, limit: u64) -> Result<u64, SendError> {
    let lost = |error| SendError::Unreachable(client.describe(error));
    let patience = Duration::from_secs(30 + limit / SLOWEST);
    let request = client.http().get(client.file_url(path)?).timeout(patience);
    let mut response = request.send().await.map_err(lost)?;
    let status = response.status();
    if status.is_client_error() {
        return Err(SendError::Refused(format!("the file cannot be fetched (HTTP {})", status.as_u16())));
    } else if !status.is_success() {
        return Err(SendError::Unreachable(format!("the file cannot be fetched (HTTP {})", status.as_u16())));
    }
    check(response.content_length(), limit)?;
    let mut size = 0;
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        size += chunk.len() as u64;
        check(Some(size), limit)?;
        to.write_all(&chunk).await.map_err(local)?;
    }
    to.flush().await.map_err(local)?;
    Ok(size)
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn local(error: std::io::Error) -> SendError {
    SendError::File(error.to_string())
}

/// A file that is removed unless it is kept, also when its download is dropped.
struct Unfinished(Option<PathBuf>);

impl Unfinished {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = self.0.take()
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "an unfinished download could not be removed");
        }
    }
}

#[cfg(test)]
mod tests;
