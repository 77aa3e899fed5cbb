//! The platform's objects as JSON, complete enough for strict clients.

use super::{
    types::{Author, Button, Chat, File, Kind, Message, MessageId, User},
    world::World,
};
use serde_json::{Map, Value, json};

/// A `User`.
pub(crate) fn user(user: &User) -> Value {
    let mut object =
        json!({"id": user.id, "is_bot": false, "first_name": user.name, "language_code": user.language});
    if let Some(username) = &user.username {
        object["username"] = username.as_str().into();
    }
    object
}

fn bot(world: &World) -> Value {
    let me = &world.me;
    json!({"id": me.id, "is_bot": true, "first_name": me.name, "username": me.username})
}

/// The `User` in `getMe`, with its additional fields.
pub(crate) fn me(world: &World) -> Value {
    let mut object = bot(world);
    object["can_join_groups"] = true.into();
    object["can_read_all_group_messages"] = (!world.options.privacy).into();
    for name in
        ["supports_inline_queries", "can_connect_to_business", "has_main_web_app", "has_topics_enabled"]
    {
        object[name] = false.into();
    }
    object
}

/// A `Chat`.
pub(crate) fn chat(world: &World, chat: &Chat) -> Value {
    match chat.kind {
        Kind::Private => private(world, chat),
        Kind::Group => {
            json!({"id": chat.id, "type": "group", "title": chat.title, "all_members_are_administrators": false})
        }
        Kind::Supergroup => json!({"id": chat.id, "type": "supergroup", "title": chat.title}),
        Kind::Forum => json!({"id": chat.id, "type": "supergroup", "title": chat.title, "is_forum": true}),
    }
}

fn private(world: &World, chat: &Chat) -> Value {
    let mut object = json!({"id": chat.id, "type": "private", "first_name": chat.title});
    let person = chat.members.first().and_then(|id| world.users.get(id));
    if let Some(username) = person.and_then(|person| person.username.as_deref()) {
        object["username"] = username.into();
    }
    object
}

/// A `ChatFullInfo`.
pub(crate) fn full_chat(world: &World, of: &Chat) -> Value {
    let mut object = chat(world, of);
    object["accent_color_id"] = 1.into();
    object["max_reaction_count"] = 11.into();
    object["accepted_gift_types"] = json!({
        "unlimited_gifts": false, "limited_gifts": false, "unique_gifts": false,
        "premium_subscription": false, "gifts_from_channels": false,
    });
    if of.kind != Kind::Private {
        object["permissions"] = json!({
            "can_send_messages": true, "can_send_audios": true, "can_send_documents": true,
            "can_send_photos": true, "can_send_videos": true, "can_send_video_notes": true,
            "can_send_voice_notes": true, "can_send_polls": true, "can_send_other_messages": true,
            "can_add_web_page_previews": true, "can_change_info": false, "can_invite_users": true,
            "can_pin_messages": false, "can_manage_topics": false,
        });
    }
    object
}

/// A `Message`, with the message that it replies to.
pub(crate) fn message(world: &World, of: &Chat, message: &Message) -> Value {
    let mut object = alone(world, of, message);
    if let Some(replied) = reply(of, message) {
        object["reply_to_message"] = alone(world, of, replied);
    }
    object
}

/// Returns the message that a message in a topic replies to by default: the topic's opening.
fn reply<'a>(of: &'a Chat, message: &Message) -> Option<&'a Message> {
    let topic = message.thread.filter(|_| of.kind == Kind::Forum && message.service.is_none());
    of.message(message.reply_to.or(topic)?)
}

fn alone(world: &World, of: &Chat, message: &Message) -> Value {
    let from = match message.from {
        Author::Bot => bot(world),
        Author::User(id) => world.users.get(&id).map_or(Value::Null, user),
    };
    let mut object = Map::new();
    object.insert("message_id".to_owned(), json!(message.id));
    object.insert("from".to_owned(), from);
    object.insert("chat".to_owned(), chat(world, of));
    object.insert("date".to_owned(), message.date.into());
    if let Some(thread) = message.thread {
        object.insert("message_thread_id".to_owned(), json!(thread));
        if of.kind == Kind::Forum {
            object.insert("is_topic_message".to_owned(), true.into());
        }
    }
    if let Some(edited) = message.edited {
        object.insert("edit_date".to_owned(), edited.into());
    }
    if let Some(album) = &message.album {
        object.insert("media_group_id".to_owned(), album.as_str().into());
    }
    if let Some(name) = &message.forwarded_from {
        let origin = json!({"type": "hidden_user", "sender_user_name": name, "date": message.date});
        object.insert("forward_origin".to_owned(), origin);
    }
    content(&mut object, message);
    object.into()
}

fn content(object: &mut Map<String, Value>, message: &Message) {
    let body = &message.body;
    let mut add = |name: &str, value: Value| object.insert(name.to_owned(), value);
    if let Some((name, value)) = &message.service {
        add(name, value.clone());
        return;
    }
    let (text, entities) = match &body.file {
        None => ("text", "entities"),
        Some(_) => ("caption", "caption_entities"),
    };
    if let Some(file) = &body.file {
        let (name, value) = media(file);
        add(name, value);
    }
    if !body.text.is_empty() {
        add(text, body.text.as_str().into());
    }
    if !body.entities.is_empty() {
        add(entities, json!(body.entities));
    }
    if !body.buttons.is_empty() {
        add("reply_markup", markup(&body.buttons));
    }
    if body.preview_off {
        add("link_preview_options", json!({"is_disabled": true}));
    }
}

fn markup(buttons: &[Vec<Button>]) -> Value {
    json!({"inline_keyboard": buttons})
}

fn media(file: &File) -> (&'static str, Value) {
    let unique = unique_id(&file.id);
    if !file.photo {
        let document = json!({
            "file_id": file.id, "file_unique_id": unique, "file_name": file.name,
            "mime_type": file.mime, "file_size": file.size,
        });
        return ("document", document);
    }
    // The platform lists thumbnails first; the last entry is the photo itself.
    let small = picture(&format!("{}-s", file.id), &format!("{unique}s"), 90, file.size.min(1200));
    ("photo", json!([small, picture(&file.id, &unique, 800, file.size)]))
}

fn picture(id: &str, unique: &str, width: u32, size: usize) -> Value {
    let height = width * 3 / 4;
    json!({"file_id": id, "file_unique_id": unique, "width": width, "height": height, "file_size": size})
}

/// Returns the ID that is the same for all bots.
pub(crate) fn unique_id(file: &str) -> String {
    format!("AQAD{}", file.chars().rev().take(8).collect::<String>())
}

/// The value of `forum_topic_created`.
pub(crate) fn topic_created(name: &str) -> Value {
    json!({"name": name, "icon_color": 7_322_096})
}

/// A `callback_query`.
pub(crate) fn callback(world: &World, of: &Chat, from: &User, id: &str, on: MessageId, data: &str) -> Value {
    let mut query = json!({"id": id, "from": user(from), "chat_instance": of.id.to_string(), "data": data});
    if let Some(pressed) = of.message(on) {
        query["message"] = message(world, of, pressed);
    }
    query
}
