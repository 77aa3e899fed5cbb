//! Files in both directions: codes of users' files, and media uploaded by the bot.

use super::{
    error::{Answer, Refusal},
    server::Ask,
    world::World,
};
use bytes::Bytes;
use serde_json::json;

/// Maximum size of an uploaded file, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 20 * 1024 * 1024;
/// Maximum size of a voice message, in bytes.
const MAX_VOICE_BYTES: usize = 2 * 1024 * 1024;

/// Answers `messageFiles/download`: exchanges a code for a short-lived URL.
pub(crate) fn locate(world: &mut World, ask: &Ask) -> Answer {
    world.scope("qyapi_robot_sendmsg")?;
    let code = ask.must("downloadCode")?;
    if ask.must("robotCode")? != world.options.client_id {
        return Err(Refusal::invalid("robotCode", "the robot is not there"));
    }
    if !world.files.contains_key(code) {
        return Err(Refusal::invalid("downloadCode", "the code is not known or too old"));
    }
    Ok(json!({"downloadUrl": format!("{}/oss/{code}", world.url)}))
}

/// Answers `media/upload`.
pub(crate) fn upload(world: &mut World, ask: &Ask) -> Answer {
    let kind = ask.text("type");
    let most = match kind {
        "image" | "file" | "video" => MAX_FILE_BYTES,
        "voice" => MAX_VOICE_BYTES,
        _ => return Err(Refusal::errcode(40004, "invalid media type")),
    };
    let (name, bytes) = ask.file.clone().ok_or_else(|| Refusal::errcode(40035, "media is missing"))?;
    if bytes.is_empty() || bytes.len() > most {
        return Err(Refusal::errcode(40006, "invalid media size"));
    }
    let id = keep(world, "@lA", &name, bytes);
    Ok(json!({"errcode": 0, "errmsg": "ok", "media_id": id, "type": kind, "created_at": 1}))
}

/// Stores a file under a new ID.
pub(crate) fn keep(world: &mut World, kind: &str, name: &str, bytes: Bytes) -> String {
    let id = format!("{kind}{:x}{}", world.random.u64(..), world.fresh());
    world.files.insert(id.clone(), (name.to_owned(), bytes));
    id
}
