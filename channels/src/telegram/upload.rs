//! Files on their way to Telegram, streamed from the disk.

use super::{
    api::{SentMessage, TelegramCallError, Thread},
    client::{OwnMessage, TelegramClient},
};
use crate::{OutFile, fetch};
use bytes::Bytes;
use futures_util::StreamExt;
use reqwest_teloxide::{
    Body,
    multipart::{Form, Part},
};
use serde_json::json;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::fs::File;
use tokio_util::io::ReaderStream;

/// The largest picture that Telegram shows as one, in bytes.
pub(super) const PHOTO: u64 = 10_000_000;
/// The largest file that Telegram takes from a bot, in bytes.
pub(super) const DOCUMENT: u64 = 50_000_000;

/// Sends a file as a picture or as a document.
pub(super) async fn send(
    client: &TelegramClient,
    chat: i64,
    to: Thread,
    file: &OutFile,
    photo: bool,
) -> Result<SentMessage, TelegramCallError> {
    let (method, field) = if photo { ("SendPhoto", "photo") } else { ("SendDocument", "document") };
    let left = Arc::new(AtomicU64::new(0));
    let (part, size) = part(file, &left).await.map_err(|error| TelegramCallError::File(error.to_string()))?;
    let mut form = Form::new().text("chat_id", chat.to_string()).part(field, part);
    if let Some(topic) = to.topic {
        form = form.text("message_thread_id", topic.to_string());
    }
    if let Some(id) = to.reply_to {
        let reply = json!({"message_id": id, "allow_sending_without_reply": true});
        form = form.text("reply_parameters", reply.to_string());
    }
    let request =
        client.http().post(client.method_url(method)?).multipart(form).timeout(fetch::patience(size));
    let sent = client.exchange::<OwnMessage>(request).await.map(SentMessage::from);
    // What has not left whole did not arrive.
    if left.load(Ordering::Relaxed) < size { sent.map_err(TelegramCallError::before) } else { sent }
}

/// Opens a file; `left` counts the bytes of it that are on their way.
async fn part(file: &OutFile, left: &Arc<AtomicU64>) -> std::io::Result<(Part, u64)> {
    let open = File::open(&file.path).await?;
    let size = open.metadata().await?.len();
    let left = Arc::clone(left);
    let count = move |chunk: &std::io::Result<Bytes>| {
        left.fetch_add(chunk.as_ref().map_or(0, |bytes| bytes.len() as u64), Ordering::Relaxed);
    };
    let body = Body::wrap_stream(ReaderStream::new(open).inspect(count));
    Ok((Part::stream_with_length(body, size).file_name(file.name.clone()), size))
}

/// Returns whether a file may be sent as a picture.
pub(super) fn is_picture(file: &OutFile, size: u64) -> bool {
    let extension = Path::new(&file.name).extension().and_then(|extension| extension.to_str());
    let known = |extension: &str| {
        ["jpg", "jpeg", "png", "webp"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    };
    size <= PHOTO && extension.is_some_and(known)
}
