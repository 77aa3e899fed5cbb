//! Files on their way to Feishu, streamed from the disk: first the bytes, then a message that shows them.

use super::{chat_client::FeishuChatClient, failure::FeishuError};
use crate::{
    OutFile,
    name::is_picture,
    transport::{CallError, OutgoingFile, transfer_timeout},
};
use pudu_net::reqwest::multipart::Form;
use serde_json::json;

/// The largest picture that Feishu shows as one, in bytes.
const MAX_PICTURE_BYTES: u64 = 10_000_000;
/// The largest file that Feishu takes, in bytes.
pub(super) const MAX_UPLOAD_BYTES: u64 = 30_000_000;

/// Sends a file: a picture as one, and as a file if Feishu does not like it. The bytes may be there twice, the
/// message is not.
pub(super) async fn send(
    chat_client: &FeishuChatClient,
    key: &str,
    file: &OutFile,
    size: u64,
) -> Result<String, FeishuError> {
    if is_picture(&file.name) && size <= MAX_PICTURE_BYTES {
        match picture(chat_client, key, file, size).await {
            Err(failure) if failure.is_refused() => {
                tracing::debug!(%failure, "failed to send picture; sending it as a file");
            }
            result => return result,
        }
    }
    let form = || async {
        let form = Form::new().text("file_type", kind(&file.name)).text("file_name", file.name.clone());
        Ok(form.part("file", OutgoingFile::open(file).await?.part()))
    };
    let stored = chat_client.upload("im/v1/files", form, "file_key", transfer_timeout(size)).await;
    // Bytes that arrived and are shown nowhere are as good as none.
    let stored = stored.map_err(CallError::before)?;
    chat_client.send("file", &json!({"file_key": stored}), key, false).await
}

async fn picture(
    chat_client: &FeishuChatClient,
    key: &str,
    file: &OutFile,
    size: u64,
) -> Result<String, FeishuError> {
    let form = || async {
        let form = Form::new().text("image_type", "message");
        Ok(form.part("image", OutgoingFile::open(file).await?.part()))
    };
    let stored = chat_client.upload("im/v1/images", form, "image_key", transfer_timeout(size)).await;
    let stored = stored.map_err(CallError::before)?;
    chat_client.send("image", &json!({"image_key": stored}), key, false).await
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
