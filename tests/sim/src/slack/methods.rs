//! The table of supported methods, and the small ones.

use super::{
    chat,
    error::{Answer, Refusal},
    files,
    params::Params,
    socket, stream, views, wire,
    world::{Author, BOT, BOT_USER, Channel, Message, Status, TEAM, World},
};
use serde_json::{Value, json};

/// Description of a method.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) effect: fn(&mut World, &Params) -> Answer,
    /// Whether it accepts JSON; methods that read only accept forms.
    pub(crate) json: bool,
    /// Whether it needs the app's token.
    pub(crate) app: bool,
}

const fn reads(name: &'static str, effect: fn(&mut World, &Params) -> Answer) -> Method {
    Method { name, effect, json: false, app: false }
}

const fn writes(name: &'static str, effect: fn(&mut World, &Params) -> Answer) -> Method {
    Method { name, effect, json: true, app: false }
}

const METHODS: [Method; 26] = [
    Method { name: "apps.connections.open", effect: socket::open, json: true, app: true },
    writes("api.test", test),
    writes("auth.test", auth),
    writes("chat.postMessage", chat::post),
    writes("chat.update", chat::update),
    writes("chat.delete", chat::delete),
    writes("chat.startStream", stream::start),
    writes("chat.appendStream", stream::append),
    writes("chat.stopStream", stream::stop),
    writes("assistant.threads.setStatus", set_status),
    writes("reactions.add", react),
    reads("conversations.history", history),
    reads("conversations.replies", replies),
    reads("conversations.list", list),
    reads("users.conversations", list),
    reads("conversations.info", info),
    reads("conversations.members", members),
    writes("conversations.open", open),
    reads("users.info", user),
    reads("files.getUploadURLExternal", files::announce),
    writes("files.completeUploadExternal", files::complete),
    reads("files.info", files::info),
    writes("views.open", views::open),
    writes("views.publish", nothing),
    reads("team.info", team),
    reads("bots.info", bot),
];

/// Finds a method.
pub(crate) fn find(name: &str, world: &World) -> Option<&'static Method> {
    static TABLE: [Method; 26] = METHODS;
    let found = TABLE.iter().find(|known| known.name == name)?;
    (world.options.streams || !name.ends_with("Stream")).then_some(found)
}

fn test(_: &mut World, params: &Params) -> Answer {
    match params.text("error") {
        Some(error) => Err(Refusal::new(error)),
        None => Ok(json!({"ok": true, "args": params.record()})),
    }
}

fn nothing(_: &mut World, _: &Params) -> Answer {
    Ok(json!({"ok": true}))
}

fn auth(_: &mut World, _: &Params) -> Answer {
    Ok(json!({
        "ok": true, "url": "https://simulated.slack.com/", "team": "Simulated", "user": "pudu",
        "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT, "is_enterprise_install": false,
    }))
}

fn team(_: &mut World, _: &Params) -> Answer {
    Ok(json!({"ok": true, "team": {"id": TEAM, "name": "Simulated", "domain": "simulated"}}))
}

fn bot(_: &mut World, _: &Params) -> Answer {
    Ok(json!({"ok": true, "bot": {"id": BOT, "user_id": BOT_USER, "name": "pudu"}}))
}

fn set_status(world: &mut World, params: &Params) -> Answer {
    if world.need("assistant:write").is_err() {
        world.need("chat:write")?;
    }
    let (channel, thread) = (params.need("channel_id")?.to_owned(), params.need("thread_ts")?.to_owned());
    if !params.has("status") {
        return Err(Refusal::argument("invalid_arguments", "missing required field: status"));
    }
    let of = world.open_channel(&channel)?;
    of.message(&thread).ok_or_else(|| Refusal::new("thread_not_found"))?;
    let text = params.text("status").unwrap_or_default().to_owned();
    world.statuses.retain(|status| status.channel != channel || status.thread != thread);
    world.statuses.push(Status { channel, thread, text });
    Ok(json!({"ok": true}))
}

fn react(world: &mut World, params: &Params) -> Answer {
    world.need("reactions:write")?;
    let (channel, ts) = (params.need("channel")?.to_owned(), params.need("timestamp")?.to_owned());
    let name = params.need("name")?.to_owned();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '+' | '\'');
    if !name.chars().all(fits) {
        return Err(Refusal::new("invalid_name"));
    }
    let message = world.open_channel(&channel)?.message_mut(&ts);
    let message = message.ok_or_else(|| Refusal::new("message_not_found"))?;
    if message.reactions.contains(&name) {
        return Err(Refusal::new("already_reacted"));
    }
    message.reactions.push(name);
    Ok(json!({"ok": true}))
}

fn may_read(world: &World, of: &Channel) -> Answer<()> {
    world.need(if of.with.is_some() { "im:history" } else { "channels:history" })?;
    if of.bot_in { Ok(()) } else { Err(Refusal::new("not_in_channel")) }
}

/// Maximum size of a page.
const PAGE: u64 = 999;

/// Newest first, without replies in threads.
fn history(world: &mut World, params: &Params) -> Answer {
    let of = world.channel(params.need("channel")?)?;
    may_read(world, of)?;
    let found = of.messages.iter().rev().filter(|message| message.thread.is_none());
    let found: Vec<&Message> = found.collect();
    page(world, of, params, &found)
}

/// The root, then its replies, oldest first.
fn replies(world: &mut World, params: &Params) -> Answer {
    let of = world.channel(params.need("channel")?)?;
    may_read(world, of)?;
    let ts = params.need("ts")?;
    let root = of.root(ts).ok_or_else(|| Refusal::new("thread_not_found"))?;
    let in_thread = |message: &&Message| message.ts == root || message.thread.as_deref() == Some(&root);
    let found: Vec<&Message> = of.messages.iter().filter(in_thread).collect();
    page(world, of, params, &found)
}

fn page(world: &World, of: &Channel, params: &Params, found: &[&Message]) -> Answer {
    let limit = params.int("limit").unwrap_or(100);
    if limit == 0 || limit > PAGE {
        return Err(Refusal::new("invalid_limit"));
    }
    let inclusive = params.flag("inclusive").unwrap_or(false);
    let after = |message: &&&Message| {
        let oldest = params.text("oldest").unwrap_or("0");
        let root = message.thread.is_none() && params.has("ts");
        root || above(&message.ts, oldest) || (inclusive && message.ts == oldest)
    };
    let before = |message: &&&Message| {
        let latest = params.text("latest").unwrap_or("99999999999.0");
        above(latest, &message.ts) || (inclusive && message.ts == latest)
    };
    let start = params.text("cursor").and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(100);
    let live: Vec<&&Message> =
        found.iter().filter(|message| !message.deleted).filter(after).filter(before).collect();
    let metadata = params.flag("include_all_metadata").unwrap_or(false);
    let messages: Vec<Value> = live
        .iter()
        .skip(start)
        .take(limit)
        .map(|message| wire::message(world, of, message, metadata))
        .collect();
    let more = live.len() > start + limit;
    let cursor = if more { (start + limit).to_string() } else { String::new() };
    Ok(json!({
        "ok": true, "messages": messages, "has_more": more, "response_metadata": {"next_cursor": cursor},
    }))
}

fn above(a: &str, b: &str) -> bool {
    let number = |ts: &str| {
        let (seconds, micros) = ts.split_once('.').unwrap_or((ts, "0"));
        (seconds.parse::<u64>().unwrap_or(0), format!("{micros:0<6}").parse::<u64>().unwrap_or(0))
    };
    number(a) > number(b)
}

fn list(world: &mut World, params: &Params) -> Answer {
    let types = params.text("types").unwrap_or("public_channel").to_owned();
    let wanted = |of: &&Channel| types.contains(if of.with.is_some() { "im" } else { "public_channel" });
    if types.contains("im") {
        world.need("im:read")?;
    }
    if types.contains("public_channel") {
        world.need("channels:read")?;
    }
    let channels: Vec<Value> = world.channels.values().filter(wanted).map(wire::channel).collect();
    Ok(json!({"ok": true, "channels": channels, "response_metadata": {"next_cursor": ""}}))
}

fn info(world: &mut World, params: &Params) -> Answer {
    let of = world.channel(params.need("channel")?)?;
    world.need(if of.with.is_some() { "im:read" } else { "channels:read" })?;
    Ok(json!({"ok": true, "channel": wire::channel(of)}))
}

fn members(world: &mut World, params: &Params) -> Answer {
    let of = world.channel(params.need("channel")?)?;
    world.need(if of.with.is_some() { "im:read" } else { "channels:read" })?;
    if !of.bot_in {
        return Err(Refusal::new("channel_not_found"));
    }
    let members: Vec<&str> = of.members.iter().map(String::as_str).chain([BOT_USER]).collect();
    Ok(json!({"ok": true, "members": members, "response_metadata": {"next_cursor": ""}}))
}

fn open(world: &mut World, params: &Params) -> Answer {
    world.need("im:write")?;
    let users = params.need("users")?;
    if !world.people.contains_key(users) {
        return Err(Refusal::new("user_not_found"));
    }
    Ok(json!({"ok": true, "channel": {"id": world.private(users)}}))
}

fn user(world: &mut World, params: &Params) -> Answer {
    world.need("users:read")?;
    let id = params.need("user")?;
    let bot = id == BOT_USER;
    let known = world.people.get(id).map(String::as_str).or_else(|| bot.then_some("pudu"));
    let name = known.ok_or_else(|| Refusal::new("user_not_found"))?;
    let mut user = json!({
        "id": id, "team_id": TEAM, "name": name.to_lowercase(), "real_name": name, "is_bot": bot,
        "profile": {"real_name": name, "display_name": name, "team": TEAM},
    });
    if params.flag("include_locale") == Some(true) {
        user["locale"] = world.locales.get(id).map_or("en-US", String::as_str).into();
    }
    Ok(json!({"ok": true, "user": user}))
}

/// Returns whether a message is the bot's.
pub(crate) fn is_own(message: &Message) -> bool {
    message.from == Author::Bot
}
