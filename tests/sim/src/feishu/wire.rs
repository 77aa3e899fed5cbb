//! Messages in the platform's format, in responses and in events.

use super::{
    types::Message,
    world::{World, unix_ms},
};
use serde_json::{Map, Value, json};

/// The tenant of all users.
pub(crate) const TENANT: &str = "2ed263bf32cf1651";

/// A message in a response.
pub(crate) fn item(world: &World, id: &str) -> Value {
    world.messages.get(id).map_or(Value::Null, |message| item_of(world, message))
}

/// The same for a given message.
pub(crate) fn item_of(world: &World, message: &Message) -> Value {
    let sender = match &message.from {
        Some(person) => {
            json!({"id": person, "id_type": "open_id", "sender_type": "user", "tenant_key": TENANT})
        }
        None => {
            json!({"id": world.options.app_id, "id_type": "app_id", "sender_type": "app", "tenant_key": TENANT})
        }
    };
    let mut item = json!({
        "message_id": message.id,
        "msg_type": message.kind,
        "create_time": message.created.to_string(),
        "update_time": message.created.to_string(),
        "deleted": message.deleted,
        "updated": message.edits > 0,
        "chat_id": message.chat,
        "sender": sender,
        "body": {"content": message.content},
        "mentions": message.mentions,
    });
    add(&mut item, "root_id", message.root.as_deref());
    add(&mut item, "parent_id", message.parent.as_deref());
    add(&mut item, "thread_id", message.thread.as_deref());
    item
}

/// The event of a message.
pub(crate) fn received(world: &World, message: &Message) -> Value {
    let chat = world.chats.get(&message.chat).map_or("group", |chat| chat.kind.word());
    let sender = message.from.as_deref().unwrap_or(&world.bot);
    let mut told = json!({
        "message_id": message.id,
        "create_time": message.created.to_string(),
        "update_time": message.created.to_string(),
        "chat_id": message.chat,
        "chat_type": chat,
        "message_type": message.kind,
        "content": message.content,
        "user_agent": "simulated",
    });
    if !message.mentions.is_empty() {
        told["mentions"] = json!(message.mentions);
    }
    add(&mut told, "root_id", message.root.as_deref());
    add(&mut told, "parent_id", message.parent.as_deref());
    add(&mut told, "thread_id", message.thread.as_deref());
    let kind = if message.from.is_some() { "user" } else { "app" };
    json!({
        "sender": {"sender_id": ids(sender), "sender_type": kind, "tenant_key": TENANT},
        "message": told,
    })
}

/// A user's IDs.
pub(crate) fn ids(open: &str) -> Value {
    let rest = open.trim_start_matches("ou_");
    json!({"open_id": open, "union_id": format!("on_{rest}"), "user_id": format!("u{rest}")})
}

/// A mention in a message.
pub(crate) fn mention(key: &str, open: &str, name: &str) -> Value {
    json!({"key": key, "id": ids(open), "name": name, "tenant_key": TENANT})
}

/// An event with its header.
pub(crate) fn envelope(world: &World, id: &str, kind: &str, event: &Value) -> Value {
    json!({
        "schema": "2.0",
        "header": {
            "event_id": id,
            "token": world.options.verification_token,
            "create_time": unix_ms().to_string(),
            "event_type": kind,
            "tenant_key": TENANT,
            "app_id": world.options.app_id,
        },
        "event": event,
    })
}

fn add(to: &mut Value, field: &str, value: Option<&str>) {
    if let (Some(fields), Some(value)) = (to.as_object_mut().map(|fields: &mut Map<_, _>| fields), value) {
        fields.insert(field.to_owned(), value.into());
    }
}
