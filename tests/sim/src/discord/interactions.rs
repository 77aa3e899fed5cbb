//! Interactions: a pressed button or a used command, and the bot's responses.

use super::{
    ask::Ask,
    error::{Answer, Refusal},
    messages,
    modals::{self, Modal},
    people, wire,
    world::{BOT, EPHEMERAL, GUILD, LOADING, Message, World},
};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A user's interaction with the bot's button or command.
#[derive(Clone, Debug)]
pub(crate) struct Interaction {
    pub(crate) id: String,
    pub(crate) channel: String,
    pub(crate) kind: u64,
    pub(crate) at: Instant,
    /// Type of the bot's first response.
    pub(crate) answered: Option<u64>,
    /// The message that responds to a command, or that has the button.
    pub(crate) original: Option<u64>,
    /// The user.
    pub(crate) person: String,
}

/// Reports an interaction to the bot.
pub(crate) fn begin(
    world: &mut World,
    channel: &str,
    person: &str,
    kind: u64,
    data: &Value,
    message: Option<Value>,
) {
    let id = world.snowflake().to_string();
    let token = format!("aW50ZXJhY3Rpb246{id}:{}", "s1mulat3dT0ken".repeat(8));
    let Some(of) = world.channels.get(channel) else { return };
    let mut event = json!({
        "id": id, "application_id": BOT, "type": kind, "token": token, "version": 1, "data": data,
        "channel_id": channel, "channel": wire::channel(world, of), "locale": "en-US", "entitlements": [],
        "app_permissions": "274878024704", "attachment_size_limit": 10_485_760, "authorizing_integration_owners": {},
    });
    if of.is_direct() {
        event["user"] = wire::user(world, person);
        event["context"] = 1.into();
    } else {
        event["guild_id"] = GUILD.into();
        event["guild"] = json!({"id": GUILD, "locale": "en-US", "features": []});
        event["member"] = wire::member(world, person);
        event["member"]["permissions"] = "2147483647".into();
        event["context"] = 0.into();
    }
    let original = message.as_ref().and_then(|message| message["id"].as_str()?.parse().ok());
    if let Some(message) = message {
        event["message"] = message;
    }
    let interaction = Interaction {
        id,
        channel: channel.to_owned(),
        kind,
        at: Instant::now(),
        answered: None,
        original,
        person: person.to_owned(),
    };
    world.interactions.insert(token, interaction);
    world.tell("INTERACTION_CREATE", &event);
}

impl World {
    fn interaction(&self, token: &str) -> Answer<Interaction> {
        let found =
            self.interactions.get(token).ok_or_else(|| Refusal::new(404, 10015, "Unknown Webhook"))?;
        if found.at.elapsed() > self.options.token_lives {
            return Err(Refusal::new(401, 50027, "Invalid Webhook Token"));
        }
        if found.answered.is_none() {
            return Err(Refusal::new(404, 10015, "Unknown Webhook"));
        }
        Ok(found.clone())
    }

    fn original(&self, token: &str, id: &str) -> Answer<(Interaction, String)> {
        let found = self.interaction(token)?;
        let original = found.original.map(|id| id.to_string());
        let id = if id == "@original" { original } else { Some(id.to_owned()) };
        let id = id.ok_or_else(|| Refusal::new(404, 10008, "Unknown Message"))?;
        Ok((found, id))
    }
}

/// `POST /interactions/{id}/{token}/callback`
pub(crate) fn callback(world: &mut World, ask: &Ask) -> Answer {
    let (id, token) = (ask.part(1), ask.part(2).to_owned());
    let within = world.options.answer_within;
    let found = world.interactions.get(&token).filter(|found| found.id == id);
    let found = found.cloned().ok_or_else(|| Refusal::new(404, 10062, "Unknown interaction"))?;
    if found.answered.is_some() {
        return Err(Refusal::new(400, 40060, "Interaction has already been acknowledged."));
    }
    if found.at.elapsed() > within {
        return Err(Refusal::new(404, 10062, "Unknown interaction"));
    }
    let kind = ask.body["type"].as_u64().unwrap_or(0);
    let inner = Ask { body: ask.body["data"].clone(), ..ask.clone() };
    let original = match (kind, found.kind) {
        (4 | 5, _) => {
            let mut message = messages::draft(world, &found.channel, &inner)?;
            if kind == 5 {
                message.flags = (message.flags & EPHEMERAL) | LOADING;
            } else if message.content.is_empty() {
                return Err(Refusal::new(400, 50006, "Cannot send an empty message"));
            }
            message.interaction = Some(found.id.clone());
            message.pings = super::text::pings(&message.content, false, &inner.body);
            Some(people::put(world, message))
        }
        (6, 3 | 5) => found.original,
        (9, 2 | 3) => {
            modals::check(&inner.body)?;
            world.modals.push(Modal { person: found.person, source: found.original, content: inner.body });
            found.original
        }
        (7, 3 | 5) => {
            let id = found.original.unwrap_or(0).to_string();
            messages::change(world, &found.channel, &id, &inner)?;
            found.original
        }
        _ => {
            return Err(Refusal::form("type", "BASE_TYPE_CHOICES", "This interaction takes no such answer."));
        }
    };
    if let Some(kept) = world.interactions.get_mut(&token) {
        kept.answered = Some(kind);
        kept.original = original;
    }
    if ask.query.get("with_response").is_some_and(|with| with == "true") {
        let resource =
            original.and_then(|id| world.messages.get(&id)).map(|message| wire::message(world, message));
        let told = json!({
            "interaction": {"id": found.id, "type": found.kind},
            "resource": {"type": kind, "message": resource},
        });
        return Ok((200, told));
    }
    Ok((204, Value::Null))
}

/// `GET /webhooks/{application}/{token}/messages/{id}`
pub(crate) fn get(world: &mut World, ask: &Ask) -> Answer {
    let (found, id) = world.original(ask.part(2), ask.part(4))?;
    let message = world.message(&found.channel, &id)?;
    Ok((200, wire::message(world, message)))
}

/// `PATCH /webhooks/{application}/{token}/messages/{id}`
pub(crate) fn edit(world: &mut World, ask: &Ask) -> Answer {
    let (found, id) = world.original(ask.part(2), ask.part(4))?;
    messages::change(world, &found.channel, &id, ask)
}

/// `DELETE /webhooks/{application}/{token}/messages/{id}`
pub(crate) fn delete(world: &mut World, ask: &Ask) -> Answer {
    let (found, id) = world.original(ask.part(2), ask.part(4))?;
    world.message(&found.channel, &id)?;
    people::gone(world, &found.channel, &id);
    Ok((204, Value::Null))
}

/// `POST /webhooks/{application}/{token}`: the first one replaces a deferred response.
pub(crate) fn follow_up(world: &mut World, ask: &Ask) -> Answer {
    let found = world.interaction(ask.part(2))?;
    let waiting = found.original.and_then(|id| world.messages.get(&id));
    if let Some(id) = waiting.filter(|message| message.flags & LOADING != 0).map(|message| message.id) {
        return messages::change(world, &found.channel, &id.to_string(), ask);
    }
    let mut message: Message = messages::draft(world, &found.channel, ask)?;
    if message.content.is_empty() && message.files.is_empty() {
        return Err(Refusal::new(400, 50006, "Cannot send an empty message"));
    }
    message.interaction = Some(found.id);
    message.pings = super::text::pings(&message.content, false, &ask.body);
    let id = people::put(world, message);
    let told = world.messages.get(&id).map_or(Value::Null, |message| wire::message(world, message));
    Ok((200, told))
}
