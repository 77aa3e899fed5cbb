//! Files on their way to Slack: an address is asked for, the bytes go there from the disk, and then the file is
//! put into the channel. Only the last of the three is seen by people.

use super::{
    account_state::SlackAccountState,
    failure::{SlackApiError, unreachable, unreadable},
};
use crate::{OutFile, fetch, reply::CallError};
use pudu_net::reqwest::{Body, header};
use serde::Deserialize;
use serde_json::json;
use tokio::fs::File;
use tokio_util::io::ReaderStream;

/// Maximum size of a file that Slack takes, in bytes.
pub(super) const MAX_UPLOAD_BYTES: u64 = 1_000_000_000;

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
    let place: UploadUrlResponse =
        state.client.read("files.getUploadURLExternal", &params).await.map_err(unseen)?;
    bring(state, &place.upload_url, file, size).await?;
    let mut params = json!({"files": [{"id": place.file_id, "title": file.name}], "channel_id": channel});
    if let Some(thread) = thread {
        params["thread_ts"] = thread.into();
    }
    state.write::<Done>("files.completeUploadExternal", channel, &params).await?;
    Ok(place.file_id)
}

/// The address itself is the right to bring the bytes: no token goes there.
async fn bring(state: &SlackAccountState, url: &str, file: &OutFile, size: u64) -> Result<(), CallError> {
    let open = File::open(&file.path).await.map_err(|error| CallError::File(error.to_string()))?;
    let request = state
        .client
        .http()
        .post(url)
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::CONTENT_LENGTH, size)
        .body(Body::wrap_stream(ReaderStream::new(open)))
        .timeout(fetch::patience(size));
    let response = request.send().await.map_err(|error| unseen(unreachable(error)))?;
    match response.status().as_u16() {
        200..300 => Ok(()),
        status @ 400..500 if status != 429 => {
            Err(CallError::Refused(format!("the file was not taken (HTTP {status})")))
        }
        status => Err(unseen(unreadable(status, None))),
    }
}

/// Before the last step nothing was done that anybody sees.
fn unseen(error: SlackApiError) -> CallError {
    match error.into() {
        CallError::Unknown(what) => CallError::Unconnected(what),
        other => other,
    }
}
