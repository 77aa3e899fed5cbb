//! Uploads files to Slack: requests a URL, streams the bytes there from disk, and shares the file in the channel. Only
//! the last step is visible to users, some time after Slack accepted it.

use super::{
    account_state::SlackAccountState,
    facts::{SlackCase, SlackError},
};
use crate::{
    OutFile,
    transport::{CallError, OutgoingFile, exchange, transfer_timeout},
};
use pudu_net::reqwest::header;
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum size of the response to an upload, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Error for a file that was already shared, or whose bytes Slack does not have.
const NO_UPLOAD: &str = "file_not_found";

#[derive(Deserialize)]
struct UploadUrlResponse {
    upload_url: String,
    file_id: String,
}

#[derive(Deserialize)]
struct Done {}

#[derive(Deserialize)]
struct SharedFileInfo {
    file: FileShares,
}

#[derive(Deserialize)]
struct FileShares {
    #[serde(default)]
    shares: Value,
}

/// Result of sharing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareOutcome {
    /// The file is shared, by this call or by an earlier one.
    Now,
    /// Slack does not have the file's bytes.
    Never,
}

/// Uploads a file's bytes and returns the file's id. The file is not visible yet.
pub(super) async fn upload_file(
    state: &SlackAccountState,
    file: &OutFile,
    size: u64,
) -> Result<String, CallError> {
    let length = size.to_string();
    let params = [("filename", file.name.as_str()), ("length", length.as_str())];
    let upload: UploadUrlResponse =
        state.client.read("files.getUploadURLExternal", &params).await.map_err(SlackError::before)?;
    bring_bytes(state, &upload.upload_url, file).await.map_err(SlackError::before)?;
    Ok(upload.file_id)
}

/// Shares an uploaded file in the channel. Idempotent: Slack shares a file only once.
pub(super) async fn share(
    state: &SlackAccountState,
    channel: &str,
    thread: Option<&str>,
    file: &OutFile,
    id: &str,
) -> Result<ShareOutcome, CallError> {
    let mut params = json!({"files": [{"id": id, "title": file.name}], "channel_id": channel});
    if let Some(thread) = thread {
        params["thread_ts"] = thread.into();
    }
    match state.write::<Done>("files.completeUploadExternal", channel, &params).await {
        Ok(Done {}) => Ok(ShareOutcome::Now),
        Err(CallError::Refused(why)) if why == NO_UPLOAD => was_shared(state, id).await,
        Err(error) => Err(error.into()),
    }
}

/// Returns whether a file is visible in the channel, which can take some time after sharing.
pub(super) async fn is_shown(state: &SlackAccountState, channel: &str, id: &str) -> Result<bool, SlackError> {
    let info: SharedFileInfo = state.client.read("files.info", &[("file", id)]).await?;
    let shares = &info.file.shares;
    Ok(["public", "private"].iter().any(|kind| shares[kind].get(channel).is_some()))
}

/// Determines whether a file that Slack refuses to share was shared before: Slack deletes a file that was never shared.
async fn was_shared(state: &SlackAccountState, id: &str) -> Result<ShareOutcome, CallError> {
    match state.client.read::<Done>("files.info", &[("file", id)]).await {
        Ok(Done {}) => Ok(ShareOutcome::Now),
        Err(CallError::Refused(why)) if why == NO_UPLOAD => Ok(ShareOutcome::Never),
        // Slack keeps uploaded bytes for a long time, so the file was most likely shared.
        Err(CallError::Special(SlackCase::Scope(scope))) => {
            tracing::debug!(scope, "assuming that the file is shared");
            Ok(ShareOutcome::Now)
        }
        Err(error) => Err(error.before().into()),
    }
}

/// Uploads the bytes. The URL itself grants access, so no token is sent to it.
async fn bring_bytes(state: &SlackAccountState, url: &str, file: &OutFile) -> Result<(), SlackError> {
    let file = OutgoingFile::open(file).await?;
    let http = &state.client.transport.http;
    let request = http
        .post(url)
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::CONTENT_LENGTH, file.size)
        .timeout(transfer_timeout(file.size))
        .body(file.body);
    exchange(request, MAX_RESPONSE_BYTES, |response| match response.status {
        200..300 => Ok(()),
        status @ 400..500 if status != 429 => {
            Err(CallError::Refused(format!("the file was not accepted (HTTP {status})")))
        }
        _ => Err(response.unreadable()),
    })
    .await
}
