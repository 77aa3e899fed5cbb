//! Files on their way to Slack: an address is asked for, the bytes go there from the disk, and then the file is
//! put into the channel. Only the last of the three is seen by people.

use super::{account_state::SlackAccountState, failure::SlackError};
use crate::{
    OutFile,
    transport::{CallError, OutgoingFile, exchange, transfer_timeout},
};
use pudu_net::reqwest::header;
use serde::Deserialize;
use serde_json::json;

/// Maximum size of a file that Slack takes, in bytes.
pub(super) const MAX_UPLOAD_BYTES: u64 = 1_000_000_000;

/// Maximum size of the answer to the bytes, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
struct UploadUrlResponse {
    upload_url: String,
    file_id: String,
}

#[derive(Deserialize)]
struct Done {}

/// Sends a file and returns its id.
pub(super) async fn send(
    state: &SlackAccountState,
    channel: &str,
    thread: Option<&str>,
    file: &OutFile,
    size: u64,
) -> Result<String, CallError> {
    let length = size.to_string();
    let params = [("filename", file.name.as_str()), ("length", length.as_str())];
    // Before the last step nothing was done that anybody sees.
    let place: UploadUrlResponse =
        state.client.read("files.getUploadURLExternal", &params).await.map_err(SlackError::before)?;
    bring(state, &place.upload_url, file).await.map_err(SlackError::before)?;
    let mut params = json!({"files": [{"id": place.file_id, "title": file.name}], "channel_id": channel});
    if let Some(thread) = thread {
        params["thread_ts"] = thread.into();
    }
    state.write::<Done>("files.completeUploadExternal", channel, &params).await?;
    Ok(place.file_id)
}

/// The address itself is the right to bring the bytes: no token goes there.
async fn bring(state: &SlackAccountState, url: &str, file: &OutFile) -> Result<(), SlackError> {
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
