//! Uploads files to Discord, streamed from disk.

use super::facts::DiscordError;
use crate::{
    OutFile,
    recovery::CALL_TIMEOUT,
    transport::{OutgoingFile, transfer_timeout},
};
use pudu_net::reqwest::multipart::Form;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the timeout for an upload of `size` bytes.
pub(super) fn timeout(size: u64) -> Duration {
    transfer_timeout(size) + CALL_TIMEOUT
}

/// Builds the multipart form of a message with a file.
pub(super) async fn form(file: &OutFile, mut message: Value) -> Result<Form, DiscordError> {
    message["attachments"] = json!([{"id": 0, "filename": file.name}]);
    let part = OutgoingFile::open(file).await?.part();
    Ok(Form::new().text("payload_json", message.to_string()).part("files[0]", part))
}
