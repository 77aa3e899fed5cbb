//! Downloads files from Slack.

use super::{client::SlackClient, decode::BY_ID, wire::SlackFile};
use crate::{
    Attachment, SendError,
    name::has_extension,
    transport::{begin_fetch, check_size, save},
};
use pudu_net::reqwest::header;
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct FileInfoResponse {
    file: SlackFile,
}

/// Downloads a file to `to`, which does not exist yet.
pub(super) async fn file(
    client: &SlackClient,
    attachment: &Attachment,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let url = address(client, &attachment.handle, limit).await?;
    let response = begin_fetch(client.get_file(&url)?, limit).await?;
    // Without permission to read files, Slack returns its login page with status 200.
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_page = response.status().is_success() && kind.is_some_and(|kind| kind.starts_with("text/html"));
    if is_page && !has_extension(&attachment.name, &["html", "htm"]) {
        return Err(SendError::Refused(
            "Slack requires a login for the file: the scope files:read is missing".to_owned(),
        ));
    }
    save(response, to, limit).await
}

/// Returns a file's URL. For a file shared from another workspace it has to be requested.
async fn address(client: &SlackClient, handle: &str, limit: u64) -> Result<String, SendError> {
    let Some(id) = handle.strip_prefix(BY_ID) else { return Ok(handle.to_owned()) };
    let FileInfoResponse { file } = client.read("files.info", &[("file", id)]).await?;
    check_size(file.size, limit)?;
    let url = file.url_private_download.or(file.url_private);
    url.ok_or_else(|| SendError::Refused("the file does not exist".to_owned()))
}
