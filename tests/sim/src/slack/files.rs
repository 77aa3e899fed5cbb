//! Files: the upload in three steps, and the download with a token.

use super::{
    chat,
    error::{Answer, Refusal},
    params::Params,
    people, wire,
    world::{Author, Message, Stored, World},
};
use bytes::Bytes;
use serde_json::{Value, json};

/// The largest file that is taken, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 1024 * 1024 * 1024;

/// `files.getUploadURLExternal`
pub(crate) fn announce(world: &mut World, params: &Params) -> Answer {
    world.need("files:write")?;
    let name = params.need("filename")?.to_owned();
    let length = params.int("length").and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| (1..=MAX_FILE_BYTES).contains(length));
    let length = length.ok_or_else(|| Refusal::argument("invalid_arguments", "length must be over 0"))?;
    let id = world.id('F');
    let announced = Some(length);
    world.files.insert(id.clone(), Stored { name, bytes: Bytes::new(), announced, shared: false });
    Ok(json!({"ok": true, "upload_url": format!("{}/upload/v1/{id}", world.url), "file_id": id}))
}

/// The bytes come to the address that was handed out, without any token.
pub(crate) fn receive(world: &mut World, id: &str, bytes: Bytes) -> Answer {
    let file = world.files.get_mut(id).ok_or_else(|| Refusal::new("file_not_found"))?;
    match file.announced.take() {
        Some(length) if length == bytes.len() => {
            file.bytes = bytes;
            Ok(json!({"ok": true}))
        }
        other => {
            file.announced = other;
            Err(Refusal { status: 400, ..Refusal::new("length_mismatch") })
        }
    }
}

/// `files.completeUploadExternal`
pub(crate) fn complete(world: &mut World, params: &Params) -> Answer {
    world.need("files:write")?;
    let files = params.list("files")?;
    let ids: Vec<String> = files.iter().filter_map(|file| Some(file["id"].as_str()?.to_owned())).collect();
    if ids.is_empty() || ids.len() != files.len() {
        return Err(Refusal::argument("invalid_arguments", "missing required field: files"));
    }
    let ready = |world: &World, id: &String| {
        world.files.get(id).is_some_and(|file| file.announced.is_none() && !file.shared)
    };
    if !ids.iter().all(|id| ready(world, id)) {
        return Err(Refusal::new("file_not_found"));
    }
    if let Some(channel) = params.text("channel_id") {
        share(world, params, channel, &ids)?;
    }
    let all: Vec<Value> = ids.iter().map(|id| wire::file(world, id)).collect();
    Ok(json!({"ok": true, "files": all}))
}

fn share(world: &mut World, params: &Params, channel: &str, ids: &[String]) -> Answer<()> {
    let ts = world.ts();
    let thread = chat::thread(world.open_channel(channel)?, params)?;
    for id in ids {
        if let Some(file) = world.files.get_mut(id) {
            file.shared = true;
        }
    }
    let text = params.text("initial_comment").unwrap_or_default().to_owned();
    let files = ids.to_vec();
    people::put(world, channel, Message { ts, thread, from: Author::Bot, text, files, ..Message::default() });
    Ok(())
}

/// `files.info`
pub(crate) fn info(world: &mut World, params: &Params) -> Answer {
    world.need("files:read")?;
    let id = params.need("file")?;
    if !world.files.contains_key(id) {
        return Err(Refusal::new("file_not_found"));
    }
    let shares: Vec<Value> = world
        .channels
        .values()
        .flat_map(|of| of.messages.iter().map(move |message| (of, message)))
        .filter(|(_, message)| !message.deleted && message.files.iter().any(|file| file == id))
        .map(|(of, message)| json!({"channel": of.id, "ts": message.ts}))
        .collect();
    let mut file = wire::file(world, id);
    file["shares"] = json!({"public": shares});
    Ok(json!({"ok": true, "file": file}))
}
