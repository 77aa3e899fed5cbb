//! Uploads files to Telegram, streamed from disk.

use super::{
    api::{SentMessage, Thread},
    client::{OwnMessage, TelegramClient},
    facts::{MAX_PHOTO_BYTES, TelegramError},
};
use crate::{
    OutFile,
    name::has_extension,
    transport::{OutgoingFile, transfer_timeout},
};
use pudu_net::reqwest::multipart::Form;
use serde_json::json;

/// Sends a file as a picture or as a document.
pub(super) async fn send(
    client: &TelegramClient,
    chat: i64,
    to: Thread,
    file: &OutFile,
    photo: bool,
) -> Result<SentMessage, TelegramError> {
    let (method, field) = if photo { ("SendPhoto", "photo") } else { ("SendDocument", "document") };
    let file = OutgoingFile::open(file).await?;
    let (sent, timeout) = (file.sent_bytes(), transfer_timeout(file.size));
    let mut form = Form::new().text("chat_id", chat.to_string()).part(field, file.part());
    if let Some(topic) = to.topic {
        form = form.text("message_thread_id", topic.to_string());
    }
    if let Some(id) = to.reply_to {
        let reply = json!({"message_id": id, "allow_sending_without_reply": true});
        form = form.text("reply_parameters", reply.to_string());
    }
    let request = client.post(method).multipart(form).timeout(timeout);
    let posted = client.exchange::<OwnMessage>(request).await.map(SentMessage::from);
    // A file that was not sent completely certainly did not arrive.
    if sent.are_all() { posted } else { posted.map_err(TelegramError::before) }
}

/// Returns whether a file may be sent as a picture.
pub(super) fn is_picture(file: &OutFile, size: u64) -> bool {
    size <= MAX_PHOTO_BYTES && has_extension(&file.name, &["jpg", "jpeg", "png", "webp"])
}
