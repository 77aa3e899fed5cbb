//! Contents of a message besides words: files to fetch, and things that words can describe.

use super::wire::{Media, TelegramLocation, TelegramMessage, full_name};
use crate::{
    Attachment,
    name::{clean, extension_of},
};

/// Returns the files of a message.
pub(super) fn attachments(message: &TelegramMessage) -> Vec<Attachment> {
    let photo = message.photo.iter().max_by_key(|photo| u64::from(photo.width) * u64::from(photo.height));
    // An animation is repeated as a document for old clients.
    let document = message.document.as_ref().filter(|_| message.animation.is_none());
    let all = [
        (photo, "photo", "jpg"),
        (document, "document", "bin"),
        (message.animation.as_ref(), "animation", "mp4"),
        (message.audio.as_ref(), "audio", "mp3"),
        (message.voice.as_ref(), "voice", "ogg"),
        (message.video.as_ref(), "video", "mp4"),
        (message.video_note.as_ref(), "video-note", "mp4"),
        (message.sticker.as_ref(), "sticker", message.sticker.as_ref().map_or("webp", sticker_type)),
    ];
    all.into_iter().filter_map(|(media, kind, extension)| Some(attachment(media?, kind, extension))).collect()
}

fn attachment(media: &Media, kind: &str, extension: &str) -> Attachment {
    let given = media.file_name.as_deref().map(clean).filter(|name| !name.is_empty());
    let made_up = || {
        let extension = media.mime_type.as_deref().and_then(extension_of).unwrap_or(extension);
        let id: String = media.file_unique_id.chars().filter(|c| fits(*c)).collect();
        format!("telegram-{kind}-{id}.{extension}")
    };
    Attachment { handle: media.file_id.clone(), name: given.unwrap_or_else(made_up), size: media.file_size }
}

fn fits(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

fn sticker_type(sticker: &Media) -> &'static str {
    match sticker {
        Media { is_animated: true, .. } => "tgs",
        Media { is_video: true, .. } => "webm",
        _ => "webp",
    }
}

/// Describes in words the content that is neither text nor a file.
pub(super) fn described(message: &TelegramMessage) -> Option<String> {
    let place = |at: &TelegramLocation| format!("{}, {}", at.latitude, at.longitude);
    if let Some(venue) = &message.venue {
        return Some(format!("[Place: {}, {} ({})]", venue.title, venue.address, place(&venue.location)));
    }
    if let Some(location) = &message.location {
        return Some(format!("[Location: {}]", place(location)));
    }
    if let Some(contact) = &message.contact {
        let name = full_name(&contact.first_name, contact.last_name.as_deref());
        return Some(format!("[Contact: {name}, {}]", contact.phone_number));
    }
    if let Some(poll) = &message.poll {
        let options: Vec<&str> = poll.options.iter().map(|option| option.text.as_str()).collect();
        return Some(format!("[Poll: {} ({})]", poll.question, options.join(" / ")));
    }
    if let Some(dice) = &message.dice {
        return Some(format!("[Dice {}: {}]", dice.emoji, dice.value));
    }
    message.sticker.as_ref().and_then(|sticker| sticker.emoji.clone())
}
