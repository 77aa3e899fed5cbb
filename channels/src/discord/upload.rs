//! Files on their way to Discord, streamed from the disk.

use super::failure::DiscordError;
use crate::{
    OutFile,
    recovery::CALL_TIMEOUT,
    transport::{OutgoingFile, transfer_timeout},
};
use pudu_net::reqwest::multipart::Form;
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum size of a file that Discord takes everywhere, in bytes. Servers that were given boosts take
/// more.
pub(super) const MAX_UPLOAD_BYTES: u64 = 10 * 1024 * 1024;

/// Returns the timeout for an upload of `size` bytes.
pub(super) fn timeout(size: u64) -> Duration {
    transfer_timeout(size) + CALL_TIMEOUT
}

/// Makes the form that brings a file with a message.
pub(super) async fn form(file: &OutFile, mut message: Value) -> Result<Form, DiscordError> {
    message["attachments"] = json!([{"id": 0, "filename": file.name}]);
    let part = OutgoingFile::open(file).await?.part();
    Ok(Form::new().text("payload_json", message.to_string()).part("files[0]", part))
}
