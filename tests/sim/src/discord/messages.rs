//! Messages: creating, editing, deleting and reading them, with checks.

use super::{
    ask::Ask,
    error::{Answer, Refusal},
    people, text, wire,
    world::{
        BOT, Channel, ChannelKind, EPHEMERAL, LOADING, Message, SUPPRESS_EMBEDS, Upload, World, unix_ms,
    },
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::time::Instant;

/// Maximum length of a message, in characters.
const CONTENT: usize = 2000;
/// Maximum size of a file, in bytes.
const FILE: usize = 10 * 1024 * 1024;

/// `POST /channels/{id}/messages`
pub(crate) fn create(world: &mut World, ask: &Ask) -> Answer {
    let channel = ask.part(1).to_owned();
    let kind = world.channel(&channel)?.kind.clone();
    let thread = matches!(kind, ChannelKind::Thread { .. });
    world.need(if thread { "SEND_MESSAGES_IN_THREADS" } else { "SEND_MESSAGES" })?;
    if let Some(same) = repeated(world, &channel, &ask.body) {
        return Ok((200, same));
    }
    let mut message = draft(world, &channel, ask)?;
    if message.content.is_empty() && message.files.is_empty() && message.embeds.is_empty() {
        return Err(Refusal::new(400, 50006, "Cannot send an empty message"));
    }
    message.answers = answered(world, &channel, &ask.body)?;
    message.pings = text::pings(&message.content, message.answers.is_some(), &ask.body);
    message.nonce = ask.body.get("nonce").filter(|nonce| !nonce.is_null()).cloned();
    if let Some(of) = world.channels.get_mut(&channel) {
        of.archived = false;
    }
    let id = people::put(world, message);
    Ok((200, created(world, id)))
}

fn created(world: &World, id: u64) -> Value {
    let Some(message) = world.messages.get(&id) else { return Value::Null };
    let mut json = wire::message(world, message);
    if let Some(nonce) = &message.nonce {
        json["nonce"] = nonce.clone();
    }
    json
}

/// Returns the recent message with this nonce.
fn repeated(world: &World, channel: &str, body: &Value) -> Option<Value> {
    let nonce = body.get("nonce").filter(|nonce| !nonce.is_null())?;
    if body["enforce_nonce"] != true {
        return None;
    }
    let lives = world.options.nonces;
    let same = |message: &&Message| {
        message.channel == channel
            && message.is_own()
            && message.nonce.as_ref() == Some(nonce)
            && message.sent.is_some_and(|at| at.elapsed() < lives)
    };
    world.messages.values().find(same).map(|message| created(world, message.id))
}

/// Parses the common fields of a new message and an interaction response.
pub(crate) fn draft(world: &mut World, channel: &str, ask: &Ask) -> Answer<Message> {
    let body = &ask.body;
    if let Some(nonce) = body.get("nonce").filter(|nonce| !nonce.is_null()) {
        match nonce.as_str() {
            Some(text) if text.chars().count() > 25 => {
                let why = "Must be 25 or fewer in length.";
                return Err(Refusal::form("nonce", "NONCE_TYPE_TOO_LONG", why));
            }
            None if !nonce.is_i64() => {
                return Err(Refusal::form("nonce", "NONCE_TYPE_INVALID", "Nonce is not valid."));
            }
            _ => {}
        }
    }
    let flags = body["flags"].as_u64().unwrap_or(0);
    let content = content(body)?.unwrap_or_default();
    let components = components(body)?.unwrap_or_default();
    text::check_mentions(body)?;
    let files = keep_files(world, channel, ask)?;
    Ok(Message {
        channel: channel.to_owned(),
        author: BOT.to_owned(),
        embeds: text::embeds(&content, body),
        content,
        components,
        files,
        flags: flags & (SUPPRESS_EMBEDS | EPHEMERAL | 1 << 12),
        ..Message::default()
    })
}

fn keep_files(world: &mut World, channel: &str, ask: &Ask) -> Answer<Vec<String>> {
    if ask.files.len() > 10 {
        return Err(Refusal::form("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length."));
    }
    if !ask.files.is_empty() {
        world.need("ATTACH_FILES")?;
    }
    if ask.files.iter().any(|(_, _, bytes)| bytes.len() > FILE) {
        return Err(Refusal::new(413, 40005, "Request entity too large"));
    }
    let named = |n: usize, sent: &str| {
        let known = ask.body["attachments"].as_array().into_iter().flatten();
        let found = known
            .filter(|one| one["id"].to_string().trim_matches('"') == n.to_string())
            .find_map(|one| one["filename"].as_str());
        found.unwrap_or(sent).to_owned()
    };
    let mut ids = Vec::new();
    for (n, (_, name, bytes)) in ask.files.iter().enumerate() {
        ids.push(keep(world, channel, &named(n, name), bytes.clone()));
    }
    Ok(ids)
}

/// Stores a file; unsupported characters are removed from its name.
pub(crate) fn keep(world: &mut World, channel: &str, name: &str, bytes: bytes::Bytes) -> String {
    let id = world.snowflake().to_string();
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name = name.chars().map(plain).collect();
    world.uploads.insert(id.clone(), Upload { id: id.clone(), channel: channel.to_owned(), name, bytes });
    id
}

fn content(body: &Value) -> Answer<Option<String>> {
    match body.get("content") {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(String::new())),
        Some(Value::String(text)) if text.chars().count() > CONTENT => {
            Err(Refusal::form("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length."))
        }
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
        Some(_) => Err(Refusal::form("content", "STRING_TYPE_CONVERT", "Could not interpret as string.")),
    }
}

fn components(body: &Value) -> Answer<Option<Vec<Value>>> {
    let rows = match body.get("components") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(rows)) => rows,
        Some(_) => {
            return Err(Refusal::form("components", "LIST_TYPE_CONVERT", "Only iterables may be used."));
        }
    };
    let wrong = |n: usize, code: &str, why: &str| Err(Refusal::form(&format!("components.{n}"), code, why));
    if rows.len() > 5 {
        return wrong(0, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.");
    }
    let mut ids = BTreeSet::new();
    for (n, row) in rows.iter().enumerate() {
        let buttons = row["components"].as_array().map(Vec::as_slice).unwrap_or_default();
        if row["type"] != 1 || buttons.is_empty() || buttons.len() > 5 {
            return wrong(n, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.");
        }
        for button in buttons {
            let id = button["custom_id"].as_str().unwrap_or_default();
            let label = button["label"].as_str().unwrap_or_default();
            if button["type"] != 2 || !(1..=100).contains(&id.chars().count()) {
                return wrong(n, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
            }
            if !(1..=80).contains(&label.chars().count())
                || !(1..=6).contains(&button["style"].as_u64().unwrap_or(0))
            {
                return wrong(n, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 80 in length.");
            }
            if !ids.insert(id.to_owned()) {
                let why = "Component custom id cannot be duplicated";
                return wrong(n, "COMPONENT_CUSTOM_ID_DUPLICATED", why);
            }
        }
    }
    Ok(Some(rows.clone()))
}

fn answered(world: &World, channel: &str, body: &Value) -> Answer<Option<String>> {
    let reference = &body["message_reference"];
    let Some(id) = reference["message_id"].as_str() else { return Ok(None) };
    if world.forbidden.contains("READ_MESSAGE_HISTORY") {
        let why = "Cannot reply without permission to read message history";
        return Err(Refusal::new(400, 160_002, why));
    }
    match world.message(channel, id) {
        Ok(_) => Ok(Some(id.to_owned())),
        Err(_) if reference["fail_if_not_exists"] == false => Ok(None),
        Err(_) => Err(Refusal::form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")),
    }
}

/// `PATCH /channels/{id}/messages/{id}`
pub(crate) fn edit(world: &mut World, ask: &Ask) -> Answer {
    let (channel, id) = (ask.part(1).to_owned(), ask.part(3).to_owned());
    if !world.message(&channel, &id)?.is_own() {
        return Err(Refusal::new(403, 50005, "Cannot edit a message authored by another user"));
    }
    change(world, &channel, &id, ask)
}

/// Changes a message of the bot.
pub(crate) fn change(world: &mut World, channel: &str, id: &str, ask: &Ask) -> Answer {
    let (content, components) = (content(&ask.body)?, components(&ask.body)?);
    text::check_mentions(&ask.body)?;
    let files = keep_files(world, channel, ask)?;
    let message = world.message_mut(channel, id)?;
    let loading = message.flags & LOADING != 0;
    let empty =
        content.as_ref().is_some_and(String::is_empty) && message.files.is_empty() && files.is_empty();
    if empty || (loading && content.is_none() && files.is_empty()) {
        return Err(Refusal::new(400, 50006, "Cannot send an empty message"));
    }
    message.flags &= !LOADING;
    if let Some(content) = content {
        message.pings |= text::pings(&content, false, &ask.body);
        message.embeds = text::embeds(&content, &ask.body);
        message.content = content;
    }
    if let Some(components) = components {
        message.components = components;
    }
    if let Some(flags) = ask.body["flags"].as_u64() {
        message.flags = (message.flags & !SUPPRESS_EMBEDS) | (flags & SUPPRESS_EMBEDS);
    }
    message.files.extend(files);
    if !loading {
        message.edited = Some(unix_ms());
    }
    people::changed(world, channel, id);
    let changed = world.message(channel, id)?;
    Ok((200, wire::message(world, changed)))
}

/// `DELETE /channels/{id}/messages/{id}`
pub(crate) fn delete(world: &mut World, ask: &Ask) -> Answer {
    let (channel, id) = (ask.part(1).to_owned(), ask.part(3).to_owned());
    if !world.message(&channel, &id)?.is_own() {
        world.need("MANAGE_MESSAGES")?;
    }
    people::gone(world, &channel, &id);
    Ok((204, Value::Null))
}

/// `GET /channels/{id}/messages/{id}`
pub(crate) fn get(world: &mut World, ask: &Ask) -> Answer {
    let message = world.message(ask.part(1), ask.part(3))?;
    Ok((200, wire::message(world, message)))
}

/// `GET /channels/{id}/messages`: newest first.
pub(crate) fn list(world: &mut World, ask: &Ask) -> Answer {
    let channel = ask.part(1);
    world.channel(channel)?;
    let number = |name: &str| ask.query.get(name).map(|text| text.parse::<u64>());
    let snowflake = |name: &str| {
        let wrong = |_| Refusal::form(name, "NUMBER_TYPE_COERCE", "Value is not snowflake.");
        number(name).transpose().map_err(wrong)
    };
    let limit = snowflake("limit")?.unwrap_or(50);
    if !(1..=100).contains(&limit) {
        return Err(Refusal::form("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100."));
    }
    // Without permission to read the history it is empty, without an error.
    if world.forbidden.contains("READ_MESSAGE_HISTORY") {
        return Ok((200, json!([])));
    }
    let (after, before) = (snowflake("after")?, snowflake("before")?);
    let within = |message: &&Message| {
        after.is_none_or(|id| message.id > id) && before.is_none_or(|id| message.id < id)
    };
    let mut found: Vec<&Message> = world.in_channel(channel).filter(within).collect();
    let most = usize::try_from(limit).unwrap_or(100);
    if after.is_some() {
        found.truncate(most);
    }
    let found = found.into_iter().rev().take(most).map(|message| wire::message(world, message));
    Ok((200, found.collect()))
}

/// `POST /channels/{id}/typing`
pub(crate) fn typing(world: &mut World, ask: &Ask) -> Answer {
    world.channel(ask.part(1))?;
    world.typing.push((ask.part(1).to_owned(), Instant::now()));
    Ok((204, Value::Null))
}

/// `PUT /channels/{id}/messages/{id}/reactions/{emoji}/@me`
pub(crate) fn react(world: &mut World, ask: &Ask) -> Answer {
    world.need("ADD_REACTIONS")?;
    let emoji = ask.part(5).to_owned();
    if emoji.is_empty() || emoji.is_ascii() {
        return Err(Refusal::new(400, 10014, "Unknown Emoji"));
    }
    let message = world.message_mut(ask.part(1), ask.part(3))?;
    if !message.reactions.contains(&emoji) {
        message.reactions.push(emoji);
    }
    Ok((204, Value::Null))
}

/// `POST /channels/{id}/messages/{id}/threads`
pub(crate) fn thread(world: &mut World, ask: &Ask) -> Answer {
    let (parent, id) = (ask.part(1).to_owned(), ask.part(3).to_owned());
    world.message(&parent, &id)?;
    if world.channel(&parent)?.kind != ChannelKind::Text {
        return Err(Refusal::new(400, 50024, "Cannot execute action on this channel type"));
    }
    world.need("CREATE_PUBLIC_THREADS")?;
    if world.channels.contains_key(&id) {
        let why = "A thread has already been created for this message";
        return Err(Refusal::new(400, 160_004, why));
    }
    let name = ask.body["name"].as_str().unwrap_or_default();
    if !(1..=100).contains(&name.chars().count()) {
        return Err(Refusal::form("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length."));
    }
    let thread = people::open_thread(world, &parent, &id, name, BOT);
    Ok((201, thread))
}

/// `GET /channels/{id}`
pub(crate) fn channel(world: &mut World, ask: &Ask) -> Answer {
    let channel = world.channel(ask.part(1))?;
    Ok((200, wire::channel(world, channel)))
}

/// `POST /users/@me/channels`
pub(crate) fn direct(world: &mut World, ask: &Ask) -> Answer {
    let with = ask.body["recipient_id"].as_str().unwrap_or_default().to_owned();
    let own = |channel: &&Channel| channel.kind == ChannelKind::Direct(with.clone());
    let found = world.channels.values().find(own);
    let found = found.ok_or_else(|| Refusal::new(400, 50033, "Invalid Recipient(s)"))?;
    Ok((200, wire::channel(world, found)))
}

/// `GET /guilds/{id}/threads/active`
pub(crate) fn threads(world: &mut World, _: &Ask) -> Answer {
    let all = world.channels.values();
    let open = all.filter(|one| matches!(one.kind, ChannelKind::Thread { .. }) && !one.archived);
    let threads: Vec<Value> = open.map(|one| wire::channel(world, one)).collect();
    Ok((200, json!({"threads": threads, "members": []})))
}
