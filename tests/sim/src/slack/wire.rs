//! Messages, files and channels in the platform's format.

use super::world::{APP, Author, BOT, BOT_USER, Channel, Message, TEAM, World, unix_now};
use serde_json::{Value, json};

/// A message; with its metadata if requested.
pub(crate) fn message(world: &World, of: &Channel, message: &Message, with_metadata: bool) -> Value {
    let mut json = json!({"type": "message", "ts": message.ts, "text": message.text, "team": TEAM});
    match &message.from {
        Author::Bot => {
            json["user"] = BOT_USER.into();
            json["bot_id"] = BOT.into();
            json["app_id"] = APP.into();
            json["bot_profile"] = json!({"id": BOT, "app_id": APP, "name": "pudu", "team_id": TEAM});
        }
        Author::User(user) => {
            json["user"] = user.as_str().into();
            json["client_msg_id"] = format!("c0ffee00-{}", message.ts).into();
        }
    }
    let replies: Vec<&Message> = of.messages.iter().filter(|other| is_reply(other, message)).collect();
    if let Some(thread) = &message.thread {
        json["thread_ts"] = thread.as_str().into();
        json["parent_user_id"] = of.message(thread).map_or(Value::Null, author);
    } else if let Some(last) = replies.last() {
        json["thread_ts"] = message.ts.as_str().into();
        json["reply_count"] = replies.len().into();
        json["latest_reply"] = last.ts.as_str().into();
    }
    if !message.blocks.is_empty() {
        json["blocks"] = message.blocks.clone().into();
    }
    if !message.files.is_empty() {
        json["subtype"] = "file_share".into();
        json["files"] = message.files.iter().map(|id| file(world, id)).collect();
        json["upload"] = false.into();
    }
    if message.edited {
        json["edited"] = json!({"user": author(message), "ts": message.ts});
    }
    if let (true, Some(metadata)) = (with_metadata, &message.metadata) {
        json["metadata"] = metadata.clone();
    }
    if !message.reactions.is_empty() {
        let one = |name: &String| json!({"name": name, "users": [BOT_USER], "count": 1});
        json["reactions"] = message.reactions.iter().map(one).collect();
    }
    json
}

fn is_reply(other: &Message, to: &Message) -> bool {
    !other.deleted && other.thread.as_deref() == Some(&to.ts)
}

fn author(message: &Message) -> Value {
    match &message.from {
        Author::Bot => BOT_USER.into(),
        Author::User(user) => user.as_str().into(),
    }
}

/// A file.
pub(crate) fn file(world: &World, id: &str) -> Value {
    let Some(file) = world.files.get(id) else { return json!({"id": id, "mode": "tombstone"}) };
    let url = format!("{}/files-pri/{TEAM}-{id}", world.url);
    json!({
        "id": id, "created": unix_now(), "name": file.name, "title": file.name,
        "mimetype": "application/octet-stream", "filetype": "binary", "mode": "hosted", "is_external": false,
        "size": file.bytes.len(), "file_access": "visible",
        "url_private": format!("{url}/{}", file.name),
        "url_private_download": format!("{url}/download/{}", file.name),
    })
}

/// A channel, as in `conversations.info`.
pub(crate) fn channel(of: &Channel) -> Value {
    match &of.with {
        Some(user) => json!({
            "id": of.id, "is_im": true, "user": user, "is_channel": false, "is_group": false,
            "is_mpim": false, "is_private": true, "is_user_deleted": false,
        }),
        None => json!({
            "id": of.id, "name": of.title, "is_im": false, "is_channel": true, "is_group": false,
            "is_mpim": false, "is_private": false, "is_archived": false, "is_member": of.bot_in,
            "num_members": of.members.len(),
        }),
    }
}

/// An event in the envelope of both Socket Mode and posts.
pub(crate) fn callback(event: &Value, event_id: &str) -> Value {
    json!({
        "token": "verification-token-of-old-0", "team_id": TEAM, "api_app_id": APP, "event": event,
        "type": "event_callback", "event_id": event_id, "event_time": unix_now(),
        "authorizations": [{
            "enterprise_id": null, "team_id": TEAM, "user_id": BOT_USER, "is_bot": true,
            "is_enterprise_install": false,
        }],
        "is_ext_shared_channel": false, "event_context": format!("4-{event_id}"),
    })
}
