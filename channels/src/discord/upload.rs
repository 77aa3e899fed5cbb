//! Files on their way to Discord, streamed from the disk.

use super::client::DiscordClient;
use crate::{OutFile, reply::CallError};
use pudu_net::reqwest::{
    Body,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::fs::File;
use tokio_util::io::ReaderStream;

/// Maximum size of a file that Discord takes everywhere, in bytes. Servers that were given boosts take
/// more.
pub(super) const MAX_UPLOAD_BYTES: u64 = 10 * 1024 * 1024;
/// A transfer slower than this is taken for dead.
const MIN_BYTES_PER_SECOND: u64 = 50_000;

/// How long it may take to bring so many bytes.
pub(super) fn patience(size: u64) -> Duration {
    Duration::from_secs(30)
        + Duration::from_secs(size / MIN_BYTES_PER_SECOND).max(crate::recovery::CALL_TIMEOUT)
}

/// Makes the form that brings a file with a message.
pub(super) async fn form(file: &OutFile, size: u64, mut message: Value) -> Result<Form, CallError> {
    message["attachments"] = json!([{"id": 0, "filename": file.name}]);
    let open = File::open(&file.path).await.map_err(|error| CallError::File(error.to_string()))?;
    let body = Body::wrap_stream(ReaderStream::new(open));
    let part = Part::stream_with_length(body, size).file_name(file.name.clone());
    Ok(Form::new().text("payload_json", message.to_string()).part("files[0]", part))
}

/// Makes the call that brings it; returns what `T` reads of the answer.
pub(super) async fn send<T: serde::de::DeserializeOwned>(
    client: &DiscordClient,
    verb: pudu_net::reqwest::Method,
    path: &[&str],
    form: Form,
    size: u64,
) -> Result<super::client::DiscordResponse<T>, super::failure::DiscordApiError> {
    client.bring(verb, path, form, patience(size)).await
}
