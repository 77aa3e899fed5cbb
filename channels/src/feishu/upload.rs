//! Files on their way to Feishu, streamed from the disk: first the bytes, then a message that shows them.

use super::{chat_client::FeishuChatClient, failure::FeishuError};
use crate::{OutFile, fetch, name::is_picture, reply::CallError};
use pudu_net::reqwest::{
    Body,
    multipart::{Form, Part},
};
use serde_json::json;
use tokio::fs::File;
use tokio_util::io::ReaderStream;

/// The largest picture that Feishu shows as one, in bytes.
const IMAGE: u64 = 10_000_000;
/// The largest file that Feishu takes, in bytes.
pub(super) const FILE: u64 = 30_000_000;

/// Sends a file: a picture as one, and as a file if Feishu does not like it. The bytes may be there twice, the
/// message is not.
pub(super) async fn send(
    chat_client: &FeishuChatClient,
    key: &str,
    file: &OutFile,
    size: u64,
) -> Result<String, FeishuError> {
    if is_picture(&file.name) && size <= IMAGE {
        match picture(chat_client, key, file, size).await {
            Err(FeishuError { error: CallError::Refused(why), .. }) => {
                tracing::debug!(why, "a picture is sent as a file");
            }
            result => return result,
        }
    }
    let form = Form::new().text("file_type", kind(&file.name)).text("file_name", file.name.clone());
    let form = form.part("file", part(file, size).await?);
    let stored = chat_client
        .upload("im/v1/files", form, "file_key", fetch::patience(size))
        .await
        .map_err(not_shown)?;
    chat_client.send("file", &json!({"file_key": stored}), key, false).await
}

async fn picture(
    chat_client: &FeishuChatClient,
    key: &str,
    file: &OutFile,
    size: u64,
) -> Result<String, FeishuError> {
    let form = Form::new().text("image_type", "message").part("image", part(file, size).await?);
    let stored = chat_client
        .upload("im/v1/images", form, "image_key", fetch::patience(size))
        .await
        .map_err(not_shown)?;
    chat_client.send("image", &json!({"image_key": stored}), key, false).await
}

/// Bytes that arrived and are shown nowhere are as good as none.
fn not_shown(failure: FeishuError) -> FeishuError {
    match failure.error {
        CallError::Unknown(what) => FeishuError { error: CallError::Unconnected(what), ..failure },
        _ => failure,
    }
}

async fn part(file: &OutFile, size: u64) -> Result<Part, FeishuError> {
    let open = File::open(&file.path).await.map_err(|error| CallError::File(error.to_string()))?;
    let body = Body::wrap_stream(ReaderStream::new(open));
    Ok(Part::stream_with_length(body, size).file_name(file.name.clone()))
}

/// Returns what Feishu calls the type of a file, by its name.
fn kind(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "pdf" => "pdf",
        "doc" | "docx" => "doc",
        "xls" | "xlsx" | "csv" => "xls",
        "ppt" | "pptx" => "ppt",
        _ => "stream",
    }
}
