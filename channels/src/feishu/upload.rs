//! Sends files to Feishu: uploads the bytes, streamed from disk, then sends a message that shows them.

use super::{
    chat_client::FeishuChatClient,
    facts::{FeishuError, MAX_PICTURE_BYTES},
};
use crate::{
    OutFile,
    name::is_picture,
    transport::{CallError, OutgoingFile, transfer_timeout},
};
use pudu_net::reqwest::multipart::Form;
use serde_json::json;

/// Sends a file. A picture is sent as a picture, or as a file if Feishu refuses it. The bytes may be uploaded twice,
/// but only one message is sent.
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
    // Uploaded bytes without a message have no visible effect.
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

/// Returns Feishu's file type for a file name.
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
