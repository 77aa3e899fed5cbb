//! Files on their way from Slack.

use super::{client::SlackClient, decode::BY_ID, wire::SlackFile};
use crate::{
    Attachment, SendError,
    name::has_extension,
    transport::{begin_fetch, check_size, save},
};
use pudu_net::reqwest::header;
use serde::Deserialize;
use std::path::Path;

/// Maximum size of a file that is fetched, in bytes; Slack itself keeps larger ones.
pub(super) const MAX_DOWNLOAD_BYTES: u64 = 1_000_000_000;

#[derive(Deserialize)]
struct FileInfoResponse {
    file: SlackFile,
}

/// Fetches a file to `to`, which is made.
pub(super) async fn file(
    client: &SlackClient,
    attachment: &Attachment,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let url = address(client, &attachment.handle, limit).await?;
    let response = begin_fetch(client.get_file(&url)?, limit).await?;
    // Without the right to read files Slack answers with its page to log in, and 200.
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_page = response.status().is_success() && kind.is_some_and(|kind| kind.starts_with("text/html"));
    if is_page && !has_extension(&attachment.name, &["html", "htm"]) {
        return Err(SendError::Refused(
            "Slack wants a log-in for the file: the scope files:read is missing".to_owned(),
        ));
    }
    save(response, to, limit).await
}

/// Returns a file's address; for a file that another workspace shares it has to be requested.
async fn address(client: &SlackClient, handle: &str, limit: u64) -> Result<String, SendError> {
    let Some(id) = handle.strip_prefix(BY_ID) else { return Ok(handle.to_owned()) };
    let FileInfoResponse { file } = client.read("files.info", &[("file", id)]).await?;
    check_size(file.size, limit)?;
    let url = file.url_private_download.or(file.url_private);
    url.ok_or_else(|| SendError::Refused("the file is not there".to_owned()))
}
