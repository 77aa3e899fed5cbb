//! The bot itself: its user, its application, its commands, and the gateway's URL.

use super::{
    ask::Ask,
    error::{Answer, Refusal},
    wire,
    world::{BOT, BOT_NAME, GUILD, World},
};
use serde_json::{Value, json};

/// `GET /users/@me`
pub(crate) fn user(world: &mut World, _: &Ask) -> Answer {
    Ok((200, wire::user(world, BOT)))
}

/// `GET /users/@me/guilds`
pub(crate) fn guilds(world: &mut World, _: &Ask) -> Answer {
    let guild = wire::guild(world);
    let permissions = world.options.permissions.to_string();
    let found = json!([{
        "id": guild["id"], "name": guild["name"], "icon": null, "owner": false, "permissions": permissions,
        "features": [],
    }]);
    Ok((200, found))
}

/// `GET /guilds/{id}/channels`, without threads.
pub(crate) fn channels(world: &mut World, ask: &Ask) -> Answer {
    of_the_guild(world, ask, "channels")
}

/// `GET /guilds/{id}`
pub(crate) fn guild(world: &mut World, ask: &Ask) -> Answer {
    of_the_guild(world, ask, "roles")?;
    Ok((200, wire::guild(world)))
}

/// `GET /guilds/{id}/members/{user}`
pub(crate) fn member(world: &mut World, ask: &Ask) -> Answer {
    of_the_guild(world, ask, "roles")?;
    match world.people.contains_key(ask.part(3)) {
        true => Ok((200, wire::member(world, ask.part(3)))),
        false => Err(Refusal::new(404, 10007, "Unknown Member")),
    }
}

/// `GET /guilds/{id}/roles`
pub(crate) fn roles(world: &mut World, ask: &Ask) -> Answer {
    of_the_guild(world, ask, "roles")
}

fn of_the_guild(world: &World, ask: &Ask, what: &str) -> Answer {
    match ask.part(1) {
        GUILD => Ok((200, wire::guild(world)[what].clone())),
        _ => Err(Refusal::new(404, 10004, "Unknown Guild")),
    }
}

/// Returns the application's flags: the message content intent.
pub(crate) fn flags(world: &World) -> u64 {
    if world.options.content_intent { 1 << 19 } else { 0 }
}

/// `GET /applications/@me` and `GET /oauth2/applications/@me`
pub(crate) fn application(world: &mut World, _: &Ask) -> Answer {
    let application = json!({
        "id": BOT, "name": BOT_NAME, "description": "", "icon": null, "bot_public": true,
        "bot_require_code_grant": false, "verify_key": "0".repeat(64), "flags": flags(world),
        "bot": wire::user(world, BOT), "summary": "", "team": null,
    });
    Ok((200, application))
}

/// `GET /gateway`
pub(crate) fn gateway(world: &mut World, _: &Ask) -> Answer {
    Ok((200, json!({"url": address(world)})))
}

/// `GET /gateway/bot`
pub(crate) fn gateway_for_bots(world: &mut World, _: &Ask) -> Answer {
    let limit = json!({
        "total": 1000, "remaining": world.options.starts, "reset_after": 3_600_000, "max_concurrency": 1,
    });
    Ok((200, json!({"url": address(world), "shards": 1, "session_start_limit": limit})))
}

fn address(world: &World) -> String {
    format!("{}/gateway", world.url.replacen("http://", "ws://", 1))
}

/// `GET /applications/{id}/commands`
pub(crate) fn commands(world: &mut World, ask: &Ask) -> Answer {
    own(ask)?;
    Ok((200, world.commands.clone().into()))
}

/// `PUT /applications/{id}/commands`: replaces all commands.
pub(crate) fn put_commands(world: &mut World, ask: &Ask) -> Answer {
    own(ask)?;
    let Value::Array(commands) = &ask.body else {
        return Err(Refusal::form("_root", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType"));
    };
    if commands.len() > 100 {
        let code = "BASE_TYPE_MAX_LENGTH";
        return Err(Refusal::form("_root", code, "Must be 100 or fewer in length."));
    }
    let mut kept = Vec::new();
    for (n, command) in commands.iter().enumerate() {
        kept.push(checked(world, n, command)?);
    }
    world.commands.clone_from(&kept);
    Ok((200, kept.into()))
}

fn own(ask: &Ask) -> Answer<()> {
    if ask.part(1) == BOT { Ok(()) } else { Err(Refusal::new(403, 20012, "Not authorized")) }
}

fn checked(world: &mut World, n: usize, command: &Value) -> Answer<Value> {
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let fits = |name: &str| {
        let plain = |c: char| c.is_alphanumeric() && !c.is_uppercase() || matches!(c, '-' | '_' | '\'');
        (1..=32).contains(&name.chars().count()) && name.chars().all(plain)
    };
    let wrong = |field: &str, why: &str| {
        Err(Refusal::form(&format!("{n}.{field}"), "APPLICATION_COMMAND_INVALID_NAME", why))
    };
    if !fits(&text(command, "name")) {
        return wrong("name", "Command name is invalid");
    }
    if !(1..=100).contains(&text(command, "description").chars().count()) {
        return wrong("description", "Must be between 1 and 100 in length.");
    }
    for option in command["options"].as_array().into_iter().flatten() {
        if !fits(&text(option, "name")) {
            return wrong("options", "Command option name is invalid");
        }
        if !(1..=100).contains(&text(option, "description").chars().count()) || !option["type"].is_u64() {
            return wrong("options", "Must be between 1 and 100 in length.");
        }
    }
    let mut kept = command.clone();
    kept["id"] = world.snowflake().to_string().into();
    kept["application_id"] = BOT.into();
    kept["version"] = world.snowflake().to_string().into();
    kept["type"] = command.get("type").cloned().unwrap_or_else(|| 1.into());
    kept["default_member_permissions"] = Value::Null;
    kept["nsfw"] = false.into();
    Ok(kept)
}
