//! Files on their way to Slack: an address is asked for, the bytes go there from the disk, and then the file is
//! put into the channel. Only the last of the three is seen by people, some time after Slack took it.

use super::{
    account_state::SlackAccountState,
    failure::{SlackCase, SlackError},
};
use crate::{
    OutFile,
    transport::{CallError, OutgoingFile, exchange, transfer_timeout},
};
use pudu_net::reqwest::header;
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum size of a file that Slack takes, in bytes.
pub(super) const MAX_UPLOAD_BYTES: u64 = 1_000_000_000;

/// Maximum size of the answer to the bytes, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The error of a file that was shared already, or whose bytes Slack does not have.
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
    /// It is shared, by this call or by an earlier one.
    Now,
    /// Slack does not have its bytes.
    Never,
}

/// Brings a file's bytes to Slack and returns the file's id. The file is not visible yet.
pub(super) async fn upload_file(
    state: &SlackAccountState,
    file: &OutFile,
    size: u64,
) -> Result<String, CallError> {
    let length = size.to_string();
    let params = [("filename", file.name.as_str()), ("length", length.as_str())];
    let place: UploadUrlResponse =
        state.client.read("files.getUploadURLExternal", &params).await.map_err(SlackError::before)?;
    bring_bytes(state, &place.upload_url, file).await.map_err(SlackError::before)?;
    Ok(place.file_id)
}

/// Puts a file whose bytes Slack has into the channel. Slack does so once, however often it is asked.
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

/// Returns whether Slack shows a file in the channel. It does so some time after it took the file.
pub(super) async fn is_shown(state: &SlackAccountState, channel: &str, id: &str) -> Result<bool, SlackError> {
    let info: SharedFileInfo = state.client.read("files.info", &[("file", id)]).await?;
    let shares = &info.file.shares;
    Ok(["public", "private"].iter().any(|kind| shares[kind].get(channel).is_some()))
}

/// Returns whether a file was shared that Slack does not share now: Slack forgets a file that was never shared.
async fn was_shared(state: &SlackAccountState, id: &str) -> Result<ShareOutcome, CallError> {
    match state.client.read::<Done>("files.info", &[("file", id)]).await {
        Ok(Done {}) => Ok(ShareOutcome::Now),
        Err(CallError::Refused(why)) if why == NO_UPLOAD => Ok(ShareOutcome::Never),
        // Slack keeps uploaded bytes for long: most likely the file was shared.
        Err(CallError::Special(SlackCase::Scope(scope))) => {
            tracing::debug!(scope, "taking file for shared");
            Ok(ShareOutcome::Now)
        }
        Err(error) => Err(error.before().into()),
    }
}

/// The address itself is the right to bring the bytes: no token goes there.
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
            Err(CallError::Refused(format!("the file was not taken (HTTP {status})")))
        }
        _ => Err(response.unreadable()),
    })
    .await
}
