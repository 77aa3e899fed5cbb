//! Files on their way from Slack, never more of them than was asked for.

use super::{client::SlackClient, decode::BY_ID, failure::unreachable, wire::SlackFile};
use crate::{
    Attachment, SendError,
    fetch::{self, check},
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
    let limit = limit.min(MAX_DOWNLOAD_BYTES);
    check(attachment.size, limit)?;
    let url = address(client, &attachment.handle, limit).await?;
    let response = client.file(&url, fetch::patience(limit)).await?;
    let status = response.status();
    if status.is_redirection() || status.is_client_error() {
        return Err(SendError::Refused(format!("the file cannot be fetched (HTTP {})", status.as_u16())));
    }
    if !status.is_success() {
        return Err(SendError::Unreachable(format!("the file cannot be fetched (HTTP {})", status.as_u16())));
    }
    // Without the right to read files Slack answers with its page to log in, and 200.
    let html = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if html.is_some_and(|kind| kind.starts_with("text/html")) && !is_page(&attachment.name) {
        return Err(SendError::Refused(
            "Slack wants a log-in for the file: the scope files:read is missing".to_owned(),
        ));
    }
    check(response.content_length(), limit)?;
    fetch::keep(response.bytes_stream(), to, limit, |error| unreachable(error).into()).await
}

fn is_page(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["html", "htm"].iter().any(|page| extension.eq_ignore_ascii_case(page)))
}

/// Returns a file's address; of one that another workspace shares Slack tells only when asked.
async fn address(client: &SlackClient, handle: &str, limit: u64) -> Result<String, SendError> {
    let Some(id) = handle.strip_prefix(BY_ID) else { return Ok(handle.to_owned()) };
    let FileInfoResponse { file } = client.read("files.info", &[("file", id)]).await?;
    check(file.size, limit)?;
    let url = file.url_private_download.or(file.url_private);
    url.ok_or_else(|| SendError::Refused("the file is not there".to_owned()))
}
