//! Messages, channels and users in the platform's format.

use super::world::{
    BOT, BOT_NAME, BOT_ROLE, Channel, ChannelKind, GUILD, Message, SUPPRESS_EMBEDS, Upload, World, made,
};
use serde_json::{Value, json};

/// Permission to view a channel, and the same with permission to read its history.
const VIEW_CHANNEL: u64 = 1 << 10;
const READS: u64 = VIEW_CHANNEL | 1 << 16;

/// A user: a human or the bot.
pub(crate) fn user(world: &World, id: &str) -> Value {
    let is_bot = id == BOT;
    let name = if is_bot { BOT_NAME } else { world.people.get(id).map_or("somebody", String::as_str) };
    let mut json = json!({
        "id": id, "username": name.to_lowercase().replace(' ', "_"), "discriminator": if is_bot { "0001" } else { "0" },
        "global_name": name, "avatar": null, "public_flags": 0,
    });
    if is_bot {
        json["bot"] = true.into();
    }
    json
}

pub(crate) fn member(world: &World, id: &str) -> Value {
    let roles = if id == BOT { vec![BOT_ROLE] } else { Vec::new() };
    json!({
        "user": user(world, id), "roles": roles, "nick": null, "joined_at": "2026-01-01T00:00:00+00:00",
        "deaf": false, "mute": false, "flags": 0,
    })
}

/// A channel or a thread.
pub(crate) fn channel(world: &World, channel: &Channel) -> Value {
    let last = world.in_channel(&channel.id).last().map(|message| message.id.to_string());
    let mut json = json!({"id": channel.id, "type": channel.number(), "last_message_id": last, "flags": 0});
    match &channel.kind {
        ChannelKind::Direct(person) => json["recipients"] = json!([user(world, person)]),
        ChannelKind::Text => {
            json["guild_id"] = GUILD.into();
            json["name"] = channel.name.as_str().into();
            json["position"] = 0.into();
            json["permission_overwrites"] = overwrites(channel);
        }
        ChannelKind::Thread { parent, owner } => {
            json["guild_id"] = GUILD.into();
            json["name"] = channel.name.as_str().into();
            json["parent_id"] = parent.as_str().into();
            json["owner_id"] = owner.as_str().into();
            json["message_count"] = world.in_channel(&channel.id).count().into();
            json["member_count"] = 1.into();
            json["thread_metadata"] = json!({
                "archived": channel.archived, "auto_archive_duration": 1440, "locked": false,
                "archive_timestamp": "2026-01-01T00:00:00+00:00",
            });
        }
    }
    json
}

/// Permission overwrites of a channel: only its members can see it.
fn overwrites(channel: &Channel) -> Value {
    let view = VIEW_CHANNEL.to_string();
    let mut all = vec![json!({"id": GUILD, "type": 0, "allow": "0", "deny": view})];
    let member = |id: &String| json!({"id": id, "type": 1, "allow": view, "deny": "0"});
    all.extend(channel.members.iter().map(member));
    all.into()
}

/// The server, as sent by the gateway after the start.
pub(crate) fn guild(world: &World) -> Value {
    let of = |wanted: fn(&ChannelKind) -> bool| -> Vec<Value> {
        let channels = world.channels.values().filter(|channel| wanted(&channel.kind) && !channel.archived);
        channels.map(|one| channel(world, one)).collect()
    };
    let role = |id: &str, name: &str, tags: Value| {
        let mut role = json!({
            "id": id, "name": name, "color": 0, "hoist": false, "position": 0, "permissions": READS.to_string(),
            "managed": !tags.is_null(), "mentionable": false, "flags": 0, "colors": {"primary_color": 0},
        });
        if !tags.is_null() {
            role["tags"] = tags;
        }
        role
    };
    let mut guild = settings();
    guild["member_count"] = (world.people.len() + 1).into();
    guild["members"] = json!([member(world, BOT)]);
    guild["roles"] =
        json!([role(GUILD, "@everyone", Value::Null), role(BOT_ROLE, BOT_NAME, json!({"bot_id": BOT}))]);
    guild["channels"] = of(|kind| *kind == ChannelKind::Text).into();
    guild["threads"] = of(|kind| matches!(kind, ChannelKind::Thread { .. })).into();
    for empty in [
        "voice_states",
        "presences",
        "stage_instances",
        "guild_scheduled_events",
        "stickers",
        "soundboard_sounds",
    ] {
        guild[empty] = json!([]);
    }
    guild
}

/// Fields of a server that strict clients require.
fn settings() -> Value {
    json!({
        "id": GUILD, "name": "Simulated", "owner_id": "1000000000000000009", "icon": null, "splash": null,
        "discovery_splash": null, "afk_channel_id": null, "afk_timeout": 300, "verification_level": 0,
        "default_message_notifications": 0, "explicit_content_filter": 0, "emojis": [], "features": [],
        "mfa_level": 0, "application_id": null, "system_channel_id": null, "system_channel_flags": 0,
        "rules_channel_id": null, "vanity_url_code": null, "description": null, "banner": null,
        "premium_tier": 0, "preferred_locale": "en-US", "public_updates_channel_id": null, "nsfw_level": 0,
        "premium_progress_bar_enabled": false, "safety_alerts_channel_id": null,
        "joined_at": "2026-01-01T00:00:00+00:00", "large": false, "unavailable": false,
    })
}

/// A message, with the one that it replies to.
pub(crate) fn message(world: &World, message: &Message) -> Value {
    let mut json = alone(world, message);
    if let Some(answered) = &message.answers {
        json["message_reference"] = json!({"type": 0, "channel_id": message.channel, "message_id": answered});
        json["type"] = 19.into();
        let found = world.message(&message.channel, answered);
        json["referenced_message"] = found.map_or(Value::Null, |found| alone(world, found));
    }
    json
}

/// A message in an event: with its place and, once, its nonce.
pub(crate) fn event(world: &World, of: &Channel, told: &Message) -> Value {
    let mut json = message(world, told);
    if !of.is_direct() {
        json["guild_id"] = GUILD.into();
        json["member"] = member(world, &told.author);
        if let Some(fields) = json["member"].as_object_mut() {
            fields.remove("user");
        }
    }
    if let Some(nonce) = &told.nonce {
        json["nonce"] = nonce.clone();
    }
    json["channel_type"] = of.number().into();
    json
}

fn alone(world: &World, message: &Message) -> Value {
    let mentioned: Vec<Value> =
        mentioned(&message.content).filter(|id| is_known(world, id)).map(|id| user(world, id)).collect();
    let roles: Vec<&str> =
        if message.content.contains(&format!("<@&{BOT_ROLE}>")) { vec![BOT_ROLE] } else { vec![] };
    let edited = message.edited.map(timestamp);
    let files: Vec<Value> =
        message.files.iter().filter_map(|id| world.uploads.get(id)).map(|file| upload(world, file)).collect();
    let mut json = json!({
        "id": message.id.to_string(), "channel_id": message.channel, "type": 0, "author": user(world, &message.author),
        "content": message.content, "timestamp": timestamp(made(message.id)), "edited_timestamp": edited,
        "tts": false, "mention_everyone": message.pings && message.content.contains("@everyone"),
        "mentions": mentioned, "mention_roles": roles, "attachments": files,
        "embeds": if message.flags & SUPPRESS_EMBEDS == 0 { message.embeds.clone() } else { Vec::new() },
        "components": message.components, "pinned": false, "flags": message.flags,
    });
    if message.interaction.is_some() {
        json["type"] = 20.into();
        json["application_id"] = BOT.into();
        json["webhook_id"] = BOT.into();
    }
    if !message.reactions.is_empty() {
        let one = |name: &String| {
            json!({
                "emoji": {"id": null, "name": name}, "count": 1, "me": true, "me_burst": false, "burst_colors": [],
                "count_details": {"burst": 0, "normal": 1},
            })
        };
        json["reactions"] = message.reactions.iter().map(one).collect();
    }
    json
}

fn is_known(world: &World, id: &str) -> bool {
    id == BOT || world.people.contains_key(id)
}

/// Returns the users that a text mentions.
pub(crate) fn mentioned(content: &str) -> impl Iterator<Item = &str> {
    let pieces = content.split("<@").skip(1);
    pieces
        .filter_map(|piece| piece.split_once('>'))
        .map(|(id, _)| id.trim_start_matches('!'))
        .filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(crate) fn upload(world: &World, file: &Upload) -> Value {
    let Upload { id, channel, name, bytes } = file;
    let age = world.link_age;
    let url = format!("{}/attachments/{channel}/{id}/{name}?ex={age:08x}&is=0&hm=0", world.url);
    json!({
        "id": id, "filename": name, "size": bytes.len(), "url": url, "proxy_url": url,
        "content_type": "application/octet-stream",
    })
}

/// Formats milliseconds since 1970 like the platform.
pub(crate) fn timestamp(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}000+00:00", rest % 1000)
}

/// Returns year, month and day of days since 1970.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    for (month, length) in (1..).zip([31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
        if days < length {
            return (year, month, days + 1);
        }
        days -= length;
    }
    (year, 12, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_a_date() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(timestamp(1_709_251_199_987), "2024-02-29T23:59:59.987000+00:00");
        assert_eq!(timestamp(1_795_176_000_000), "2026-11-20T12:00:00.000000+00:00");
    }

    #[test]
    fn names_in_a_text_are_found() {
        assert_eq!(mentioned("hi <@12> and <@!34>, not <@&56> nor <@x>").collect::<Vec<_>>(), ["12", "34"]);
    }
}
