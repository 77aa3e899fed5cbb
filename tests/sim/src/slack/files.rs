//! Files: the upload in three steps, and the authenticated download.

use super::{
    chat,
    core::Core,
    error::{Answer, Refusal},
    params::Params,
    people, wire,
    world::{Author, Message, Stored, World},
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// Maximum size of a file, in bytes.
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

/// Receives the bytes at the issued URL, without a token.
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
    let thread = chat::thread(world.open_channel(channel)?, params)?;
    for id in ids {
        if let Some(file) = world.files.get_mut(id) {
            file.shared = true;
        }
    }
    let text = params.text("initial_comment").unwrap_or_default().to_owned();
    let files = ids.to_vec();
    let message = Message { thread, from: Author::Bot, text, files, ..Message::default() };
    if world.options.share_after.is_zero() {
        appear(world, channel, message);
    } else {
        world.unshared.push((Instant::now() + world.options.share_after, channel.to_owned(), message));
    }
    Ok(())
}

fn appear(world: &mut World, channel: &str, message: Message) {
    let ts = world.ts();
    people::put(world, channel, Message { ts, ..message });
}

/// Lets files appear some time after they were accepted.
pub(crate) async fn appear_late(core: Arc<Core>) {
    loop {
        sleep(Duration::from_millis(20)).await;
        let now = Instant::now();
        if core.look(|world| world.unshared.iter().any(|(due, ..)| *due <= now)) {
            core.act(|world| {
                for (_, channel, message) in
                    world.unshared.extract_if(.., |(due, ..)| *due <= now).collect::<Vec<_>>()
                {
                    appear(world, &channel, message);
                }
            });
        }
    }
}

/// `files.info`
pub(crate) fn info(world: &mut World, params: &Params) -> Answer {
    world.need("files:read")?;
    let id = params.need("file")?;
    // A file without a completed upload does not exist.
    if !world.files.get(id).is_some_and(|file| file.shared) {
        return Err(Refusal::new("file_not_found"));
    }
    let mut file = wire::file(world, id);
    file["shares"] = json!({});
    for of in world.channels.values() {
        let with =
            of.messages.iter().filter(|message| !message.deleted && message.files.iter().any(|f| f == id));
        let shares: Vec<Value> = with.map(|message| json!({"ts": message.ts})).collect();
        if !shares.is_empty() {
            file["shares"][if of.with.is_some() { "private" } else { "public" }][&of.id] = shares.into();
        }
    }
    Ok(json!({"ok": true, "file": file}))
}
