//! Files: uploaded by the bot, and downloaded from users' messages.

use super::{
    ask::{Ask, Part},
    refusal::{Answer, Done, Refusal},
    types::Stored,
    world::World,
};
use serde_json::{Value, json};

/// Maximum size of an image, in bytes.
const IMAGE: usize = 10 * 1024 * 1024;
/// Maximum size of a file, in bytes.
pub(crate) const FILE: usize = 30 * 1024 * 1024;
/// Maximum size of a download, in bytes.
const RESOURCE: usize = 100 * 1024 * 1024;

/// `im.image.create`.
pub(crate) fn image(world: &mut World, ask: &Ask) -> Answer {
    if !matches!(ask.need("image_type")?, "message" | "avatar") {
        return Err(Refusal::field("image_type is invalid"));
    }
    let part = part(ask, "image", IMAGE, 234_006)?;
    if !picture(&part.bytes) {
        return Err(Refusal::new(234_011, "Can't recognize image format."));
    }
    let key = world.fresh("img_v3_");
    world.files.insert(key.clone(), Stored { part, own: true });
    Ok(Done::Data(json!({"image_key": key})))
}

/// `im.file.create`.
pub(crate) fn file(world: &mut World, ask: &Ask) -> Answer {
    const KINDS: [&str; 7] = ["opus", "mp4", "pdf", "doc", "xls", "ppt", "stream"];
    if !KINDS.contains(&ask.need("file_type")?) {
        return Err(Refusal::field("file_type is invalid"));
    }
    let name = ask.need("file_name")?.to_owned();
    let part = Part { name, ..part(ask, "file", FILE, 234_006)? };
    let key = world.fresh("file_v3_");
    world.files.insert(key.clone(), Stored { part, own: true });
    Ok(Done::Data(json!({"file_key": key})))
}

fn part(ask: &Ask, field: &str, most: usize, code: i64) -> Answer<Part> {
    let part = ask.files.get(field).ok_or_else(|| Refusal::field(&format!("{field} is required")))?;
    match part.bytes.len() {
        0 => Err(Refusal::new(234_010, "File's size can't be 0.")),
        size if size > most => Err(Refusal::new(code, "The file size exceed the max value.")),
        _ => Ok(part.clone()),
    }
}

/// `im.resource.get`: a file of a message, only with that message's ID.
pub(crate) fn resource(world: &mut World, ask: &Ask) -> Answer {
    let kind = ask.query.get("type").map(String::as_str).unwrap_or_default();
    if !matches!(kind, "image" | "file") {
        return Err(Refusal::new(234_001, "Invalid request param: type"));
    }
    let key = ask.id("file_key");
    let message = world.message(ask.id("message_id"))?;
    if !message.content.contains(key) {
        return Err(Refusal::new(234_003, "File not in msg."));
    }
    if key.starts_with("img_") != (kind == "image") {
        return Err(Refusal::new(234_001, "Invalid request param: type"));
    }
    let stored = world.files.get(key).ok_or_else(|| Refusal::new(234_003, "File not in msg."))?;
    if stored.part.bytes.len() > RESOURCE {
        return Err(Refusal::new(234_037, "Downloaded file size exceeds limit."));
    }
    Ok(Done::Bytes(stored.part.bytes.clone()))
}

/// Returns the files that a message's content names.
pub(crate) fn carried(world: &World, content: &str) -> Vec<(String, bytes::Bytes)> {
    let json: Value = serde_json::from_str(content).unwrap_or_default();
    let keys = ["image_key", "file_key"].into_iter().filter_map(|field| json[field].as_str());
    let stored = keys.filter_map(|key| world.files.get(key));
    stored.map(|stored| (stored.part.name.clone(), stored.part.bytes.clone())).collect()
}

/// Returns whether bytes begin like an image.
pub(crate) fn picture(bytes: &[u8]) -> bool {
    [&b"\x89PNG"[..], b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM"].iter().any(|magic| bytes.starts_with(magic))
}
