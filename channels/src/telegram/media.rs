//! Content of a message besides text: files to download, and content that can be described in words.

use super::wire::{ChecklistTask, Media, PollOption, TelegramContent, TelegramLocation, full_name};
use crate::{
    Attachment,
    name::{clean_file_name, extension_of},
};

/// Returns the files of a message's content.
pub(super) fn attachments(content: &TelegramContent) -> Vec<Attachment> {
    let photo = content.photo.iter().max_by_key(|photo| u64::from(photo.width) * u64::from(photo.height));
    // For old clients, an animation is repeated as a document.
    let document = content.document.as_ref().filter(|_| content.animation.is_none());
    let all = [
        (photo, "photo", "jpg"),
        (document, "document", "bin"),
        (content.animation.as_ref(), "animation", "mp4"),
        (content.audio.as_ref(), "audio", "mp3"),
        (content.voice.as_ref(), "voice", "ogg"),
        (content.video.as_ref(), "video", "mp4"),
        (content.video_note.as_ref(), "video-note", "mp4"),
        (content.sticker.as_ref(), "sticker", content.sticker.as_ref().map_or("webp", sticker_type)),
    ];
    all.into_iter().filter_map(|(media, kind, extension)| Some(attachment(media?, kind, extension))).collect()
}

fn attachment(media: &Media, kind: &str, extension: &str) -> Attachment {
    let file_name = media.file_name.as_deref().map(clean_file_name).filter(|name| !name.is_empty());
    let made_up = || {
        let extension = media.mime_type.as_deref().and_then(extension_of).unwrap_or(extension);
        let id: String = media.file_unique_id.chars().filter(|c| fits(*c)).collect();
        format!("telegram-{kind}-{id}.{extension}")
    };
    Attachment {
        handle: media.file_id.clone(),
        name: file_name.unwrap_or_else(made_up),
        size: media.file_size,
    }
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

/// Describes content that is neither text nor a file.
pub(super) fn described(content: &TelegramContent) -> Option<String> {
    let coordinates = |at: &TelegramLocation| format!("{}, {}", at.latitude, at.longitude);
    if let Some(venue) = &content.venue {
        return Some(format!(
            "[Place: {}, {} ({})]",
            venue.title,
            venue.address,
            coordinates(&venue.location)
        ));
    }
    if let Some(location) = &content.location {
        return Some(format!("[Location: {}]", coordinates(location)));
    }
    if let Some(contact) = &content.contact {
        let name = full_name(&contact.first_name, contact.last_name.as_deref());
        return Some(format!("[Contact: {name}, {}]", contact.phone_number));
    }
    if let Some(poll) = &content.poll {
        let options: Vec<String> = poll.options.iter().map(option).collect();
        return Some(format!("[Poll: {} ({})]", poll.question, options.join(" / ")));
    }
    if let Some(list) = &content.checklist {
        let task = |task: &ChecklistTask| {
            format!("\n- [{}] {}", if task.completion_date == 0 { ' ' } else { 'x' }, task.text)
        };
        return Some(format!(
            "[Checklist: {}]{}",
            list.title,
            list.tasks.iter().map(task).collect::<String>()
        ));
    }
    if let Some(offer) = content.game.as_ref().or(content.invoice.as_ref()) {
        return Some(format!("[{}: {}]", offer.title, offer.description));
    }
    if content.story.is_some() {
        return Some("[Story: Telegram does not show it to bots]".to_owned());
    }
    if content.paid_media.is_some() {
        return Some("[Paid media: Telegram does not show it to bots]".to_owned());
    }
    if let Some(dice) = &content.dice {
        return Some(format!("[Dice {}: {}]", dice.emoji, dice.value));
    }
    content.sticker.as_ref().and_then(|sticker| sticker.emoji.clone())
}

/// Describes an option of a poll, with its votes.
fn option(option: &PollOption) -> String {
    match option.voter_count {
        0 => option.text.clone(),
        votes => format!("{}: {votes}", option.text),
    }
}
