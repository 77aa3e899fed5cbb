//! Messages of the bot: sending, replying, editing, deleting, reading.

use super::{
    ask::Ask,
    content::{self, CARD, Face},
    refusal::{Answer, Done, Refusal},
    types::{Kind, Message, Reaction},
    wire,
    world::{World, unix_ms},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Lifetime of an idempotency key.
const UUID_LIVES: Duration = Duration::from_secs(60 * 60);
/// Maximum length of a key.
const UUID: usize = 50;
/// Time in which a card can be changed.
const CHANGES: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Maximum number of edits of a text.
const EDITS: u32 = 20;

/// `im.message.create`.
pub(crate) fn create(world: &mut World, ask: &Ask) -> Answer {
    let to = ask.need("receive_id")?;
    let chat = match ask.query.get("receive_id_type").map(String::as_str) {
        Some("chat_id") => to.to_owned(),
        Some("open_id") => world.private(to).ok_or_else(|| Refusal::params("Invalid receive_id"))?,
        Some("user_id" | "union_id" | "email") => return Err(Refusal::params("Invalid receive_id")),
        _ => return Err(Refusal::field("receive_id_type is required")),
    };
    send(world, ask, &chat, None)
}

/// `im.message.reply`.
pub(crate) fn reply(world: &mut World, ask: &Ask) -> Answer {
    let parent = world.message(ask.id("message_id"))?.clone();
    let chat = world.open_chat(&parent.chat)?;
    if ask.flag("reply_in_thread") && chat.kind == Kind::Private && parent.thread.is_none() {
        return Err(Refusal::new(230_071, "This chat does not support reply in thread."));
    }
    send(world, ask, &parent.chat.clone(), Some(&parent))
}

fn send(world: &mut World, ask: &Ask, chat: &str, parent: Option<&Message>) -> Answer {
    let kind = ask.need("msg_type")?;
    let text = ask.need("content")?;
    let uuid = ask.uuid(UUID)?;
    world.open_chat(chat)?;
    if let Some(sent) = uuid.as_ref().and_then(|uuid| world.sent.get(uuid))
        && sent.1.elapsed() < UUID_LIVES
    {
        return Ok(Done::Data(wire::item(world, &sent.0)));
    }
    world.meter.five(chat)?;
    world.reads(text)?;
    let json = content::check(kind, text)?;
    let card = check_parts(world, kind, &json)?;
    let id = world.fresh("om_");
    let (root, parent_id, thread) = place(world, ask, chat, parent);
    let message = Message {
        id: id.clone(),
        chat: chat.to_owned(),
        from: None,
        kind: kind.to_owned(),
        content: text.to_owned(),
        mentions: Vec::new(),
        root,
        parent: parent_id,
        thread,
        card: card.clone(),
        created: unix_ms(),
        at: Instant::now(),
        edits: 0,
        deleted: false,
        reactions: Vec::new(),
        face: Face::default(),
        history: Vec::new(),
        bundle: Vec::new(),
    };
    if let Some(card) = card.and_then(|card| world.cards.get_mut(&card)) {
        card.message = Some(id.clone());
    }
    world.put(message);
    if let Some(uuid) = uuid {
        world.sent.insert(uuid, (id.clone(), Instant::now()));
    }
    Ok(Done::Data(wire::item(world, &id)))
}

/// Checks that referenced parts exist and belong to the bot. Returns the ID of a card entity.
fn check_parts(world: &World, kind: &str, json: &Value) -> Answer<Option<String>> {
    let own =
        |key: &str| world.files.get(json[key].as_str().unwrap_or_default()).is_some_and(|file| file.own);
    match kind {
        "image" if !own("image_key") => Err(Refusal::new(230_055, "Invalid image_key.")),
        "file" | "audio" | "media" if !own("file_key") => Err(Refusal::new(230_055, "Invalid file_key.")),
        "interactive" => entity(world, json),
        _ => Ok(None),
    }
}

fn entity(world: &World, json: &Value) -> Answer<Option<String>> {
    if json["type"] != "card" {
        content::check_card(json).map_err(|(code, why)| Refusal::card(code, &why))?;
        return Ok(None);
    }
    let id = json.pointer("/data/card_id").and_then(Value::as_str).unwrap_or_default();
    match world.cards.get(id) {
        None => Err(Refusal::card(200_740, "card is not exist")),
        Some(card) if card.message.is_some() => Err(Refusal::card(200_730, "card has been sent")),
        Some(_) => Ok(Some(id.to_owned())),
    }
}

/// Returns the root, parent and thread of a reply. A reply in a thread stays there.
fn place(
    world: &mut World,
    ask: &Ask,
    chat: &str,
    parent: Option<&Message>,
) -> (Option<String>, Option<String>, Option<String>) {
    let Some(parent) = parent else {
        let topics = world.chats.get(chat).is_some_and(|chat| chat.kind.opens_topics());
        return (None, None, topics.then(|| world.fresh("omt_")));
    };
    let root = parent.root.clone().unwrap_or_else(|| parent.id.clone());
    let mut thread = parent.thread.clone();
    if thread.is_none() && ask.flag("reply_in_thread") {
        let new = world.fresh("omt_");
        for id in [&root, &parent.id] {
            if let Some(message) = world.messages.get_mut(id) {
                message.thread = Some(new.clone());
            }
        }
        thread = Some(new);
    }
    (Some(root), Some(parent.id.clone()), thread)
}

/// Returns a message of the bot that may be changed.
fn own<'a>(world: &'a World, ask: &Ask) -> Answer<&'a Message> {
    let message = world.message(ask.id("message_id"))?;
    if message.from.is_some() {
        return Err(Refusal::new(230_027, "Lack of necessary permissions: the message is not the bot's."));
    }
    world.open_chat(&message.chat)?;
    Ok(message)
}

/// `im.message.update`: replaces a text or post.
pub(crate) fn update(world: &mut World, ask: &Ask) -> Answer {
    let (kind, text) = (ask.need("msg_type")?, ask.need("content")?);
    let message = own(world, ask)?.clone();
    if !matches!(message.kind.as_str(), "text" | "post") || message.kind != kind {
        return Err(Refusal::new(230_054, "This operation is not supported for this message type."));
    }
    if message.edits >= EDITS {
        return Err(Refusal::new(230_072, "The message has reached the number of times it can be edited."));
    }
    content::check(kind, text)?;
    world.meter.five(&message.id)?;
    change(world, &message.id, |message| {
        text.clone_into(&mut message.content);
        message.edits += 1;
    });
    Ok(Done::Data(wire::item(world, &message.id)))
}

/// `im.message.patch`: replaces a card.
pub(crate) fn patch(world: &mut World, ask: &Ask) -> Answer {
    let text = ask.need("content")?;
    let message = own(world, ask)?.clone();
    if message.kind != "interactive" || message.card.is_some() {
        return Err(Refusal::new(230_054, "This operation is not supported for this message type."));
    }
    if message.at.elapsed() > CHANGES {
        return Err(Refusal::new(230_031, "The message has been sent for more than 14 days."));
    }
    if text.len() > CARD {
        return Err(Refusal::new(230_025, "The length of the message content reaches its limit."));
    }
    let json = content::check("interactive", text)?;
    entity(world, &json)?;
    let before: Value = serde_json::from_str(&message.content).unwrap_or_default();
    if !shared(&before) || !shared(&json) {
        return Err(Refusal::card(300_302, "update_multi is not true"));
    }
    world.meter.five(&message.id)?;
    change(world, &message.id, |message| text.clone_into(&mut message.content));
    Ok(Done::Data(json!({})))
}

/// Returns whether a card is shared by default: yes in JSON 2.0, no in 1.0.
fn shared(card: &Value) -> bool {
    card.pointer("/config/update_multi").map_or(card["schema"] == "2.0", |multi| multi == true)
}

fn change(world: &mut World, id: &str, change: impl FnOnce(&mut Message)) {
    if let Some(message) = world.messages.get_mut(id) {
        change(message);
    }
    world.note(id);
}

/// `im.message.delete`.
pub(crate) fn delete(world: &mut World, ask: &Ask) -> Answer {
    let id = own(world, ask)?.id.clone();
    change(world, &id, |message| message.deleted = true);
    Ok(Done::Data(json!({})))
}

/// `im.message.get`; for a bundle including its messages.
pub(crate) fn get(world: &mut World, ask: &Ask) -> Answer {
    let message = world.messages.get(ask.id("message_id"));
    let message = message.ok_or_else(|| Refusal::params("Invalid ids: message_id"))?;
    let mut items = vec![wire::item_of(world, message)];
    items.extend(message.bundle.iter().map(|inner| {
        let mut item = wire::item_of(world, inner);
        item["upper_message_id"] = json!(message.id);
        item
    }));
    Ok(Done::Data(json!({"items": items})))
}

/// `im.message.list`: of a chat or a thread, in the requested order, by pages.
pub(crate) fn list(world: &mut World, ask: &Ask) -> Answer {
    let of = |name: &str| ask.query.get(name).map(String::as_str).unwrap_or_default();
    let thread = match of("container_id_type") {
        "chat" => false,
        "thread" => true,
        _ => return Err(Refusal::field("container_id_type is required")),
    };
    let container = of("container_id");
    if !thread {
        world.open_chat(container)?;
    }
    let second = |name: &str| of(name).parse::<i64>().ok();
    let (from, to) = (second("start_time").unwrap_or(0), second("end_time").unwrap_or(i64::MAX));
    let mut found: Vec<&Message> = world
        .messages
        .values()
        .filter(|one| if thread { one.thread.as_deref() == Some(container) } else { one.chat == container })
        .filter(|one| (from..=to).contains(&(one.created / 1000)))
        .collect();
    found.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
    if of("sort_type") == "ByCreateTimeDesc" {
        found.reverse();
    }
    let size: usize = of("page_size").parse().unwrap_or(20).clamp(1, 50);
    let start = match of("page_token") {
        "" => 0,
        token => *world.pages.get(token).ok_or_else(|| Refusal::field("page_token is invalid"))?,
    };
    let items: Vec<Value> =
        found.iter().skip(start).take(size).map(|one| wire::item_of(world, one)).collect();
    let more = start + items.len() < found.len();
    let end = start + items.len();
    let next = if more { page_token(world, end) } else { String::new() };
    Ok(Done::Data(json!({"items": items, "has_more": more, "page_token": next})))
}

/// Returns a token like the platform's: base64, whose `+`, `/` and `=` have another meaning in a query.
fn page_token(world: &mut World, end: usize) -> String {
    let mut bytes = [0xfb, 0xef, 0xff, 0];
    world.random.fill(&mut bytes[3..]);
    let token = format!("{}{}", STANDARD.encode(bytes), STANDARD.encode(end.to_be_bytes()));
    let token = format!("{}==", token.trim_end_matches('='));
    world.pages.insert(token.clone(), end);
    token
}

/// `im.reaction.create`. Each user can add an emoji once.
pub(crate) fn react(world: &mut World, ask: &Ask) -> Answer {
    const KNOWN: [&str; 8] = ["OK", "THUMBSUP", "DONE", "Typing", "OnIt", "Get", "EYES", "GLANCE"];
    let emoji = ask.body.get("reaction_type").and_then(|kind| kind["emoji_type"].as_str());
    let emoji = emoji.ok_or_else(|| Refusal::field("reaction_type is required"))?;
    if !KNOWN.contains(&emoji) {
        return Err(Refusal::new(231_001, "reaction type is invalid."));
    }
    let id = world.message(ask.id("message_id"))?.id.clone();
    let fresh = world.fresh("");
    let Some(message) = world.messages.get_mut(&id) else { return Err(Refusal::params("message_id")) };
    let known = message.reactions.iter().find(|one| one.emoji == emoji).map(|one| one.id.clone());
    let reaction = known.unwrap_or_else(|| {
        message.reactions.push(Reaction { id: fresh.clone(), emoji: emoji.to_owned() });
        fresh
    });
    Ok(Done::Data(json!({
        "reaction_id": reaction,
        "operator": {"operator_id": world.options.app_id, "operator_type": "app"},
        "action_time": unix_ms().to_string(),
        "reaction_type": {"emoji_type": emoji},
    })))
}

/// `im.reaction.delete`.
pub(crate) fn unreact(world: &mut World, ask: &Ask) -> Answer {
    let id = world.message(ask.id("message_id"))?.id.clone();
    let gone = || Refusal::new(231_011, "reaction is not exist.");
    let message = world.messages.get_mut(&id).ok_or_else(gone)?;
    let at = message.reactions.iter().position(|one| one.id == ask.id("reaction_id")).ok_or_else(gone)?;
    let reaction = message.reactions.remove(at);
    Ok(Done::Data(json!({"reaction_id": reaction.id, "reaction_type": {"emoji_type": reaction.emoji}})))
}
