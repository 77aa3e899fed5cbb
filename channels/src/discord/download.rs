//! Downloads files from Discord, never more bytes than requested.
//!
//! A file's URL is valid for about a day. Once it has expired, the message is fetched again to get a new one.

use super::{client::DiscordClient, wire::DiscordAttachment, wire::DiscordMessage};
use crate::{
    SendError,
    transport::{begin_fetch, save},
};
use pudu_net::reqwest::Response;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Location of a file, stored in [`Attachment::handle`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Handle {
    channel: String,
    message: String,
    file: String,
    url: String,
}

/// Returns the handle of a file.
pub(super) fn handle(channel: &str, message: &str, file: &DiscordAttachment) -> String {
    let handle = Handle {
        channel: channel.to_owned(),
        message: message.to_owned(),
        file: file.id.clone(),
        url: file.url.clone(),
    };
    serde_json::to_string(&handle).unwrap_or_default()
}

/// Downloads the file behind a handle to `to`.
pub(super) async fn file(
    client: &DiscordClient,
    handle: &str,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let handle: Handle = serde_json::from_str(handle)
        .map_err(|_| SendError::Refused("the file has no valid URL".to_owned()))?;
    let mut response = begin_fetch(client.get_file(&handle.url)?, limit).await?;
    if is_stale(&response) {
        let url = renewed(client, &handle).await?;
        response = begin_fetch(client.get_file(&url)?, limit).await?;
    }
    save(response, to, limit).await
}

fn is_stale(response: &Response) -> bool {
    matches!(response.status().as_u16(), 401 | 403 | 404 | 410)
}

async fn renewed(client: &DiscordClient, handle: &Handle) -> Result<String, SendError> {
    let path = ["channels", &handle.channel, "messages", &handle.message];
    let message: DiscordMessage = client.get(&path, &[]).await?.body;
    let passed = message.message_snapshots.into_iter().flat_map(|passed| passed.message.attachments);
    let found = message.attachments.into_iter().chain(passed).find(|file| file.id == handle.file);
    found.map(|file| file.url).ok_or_else(|| SendError::Refused("the file no longer exists".to_owned()))
}
