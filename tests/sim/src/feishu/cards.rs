//! CardKit: a card is separate from the message that shows it. Its operations have increasing sequence numbers, and its
//! stream closes automatically.

use super::{
    ask::Ask,
    content::{self, CARD},
    refusal::{Answer, Done, Refusal},
    types::Card,
    world::World,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Time in which a card can be changed.
const LIFE: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Maximum length of an idempotency key.
const UUID: usize = 64;
/// Maximum length of an element's text and of the settings, in characters.
const TEXT: usize = 100_000;

/// `cardkit.card.create`.
pub(crate) fn create(world: &mut World, ask: &Ask) -> Answer {
    if ask.need("type")? != "card_json" {
        return Err(Refusal::field("type must be card_json"));
    }
    let json = parse(ask.need("data")?)?;
    let id = format!("73{:017}", world.number());
    world.cards.insert(id.clone(), Card::new(json, Instant::now()));
    Ok(Done::Data(json!({"card_id": id})))
}

fn parse(data: &str) -> Answer<Value> {
    let broken = || Refusal::new(200_621, "parse card json err");
    if data.len() > CARD {
        return Err(Refusal::new(200_860, "card over max size"));
    }
    let json: Value = serde_json::from_str(data).map_err(|_| broken())?;
    if json["schema"] != "2.0" {
        return Err(Refusal::new(300_305, "card schema must be 2.0"));
    }
    if json.pointer("/config/update_multi") == Some(&json!(false)) {
        return Err(Refusal::new(300_302, "update_multi must be true"));
    }
    content::check_card(&json).map_err(|(code, why)| Refusal::new(code, why))?;
    Ok(json)
}

/// `cardkit.element.content`: replaces the text of an element, while the stream is open.
pub(crate) fn content(world: &mut World, ask: &Ask) -> Answer {
    let text = ask.body.get("content").and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return Err(Refusal::new(300_307, "content is empty"));
    }
    if text.chars().count() > TEXT {
        return Err(Refusal::field("the max len of content is 100000"));
    }
    let element = ask.id("element_id").to_owned();
    operate(world, ask, |card, now| {
        streams(card, now)?;
        let found =
            find(&mut card.json, &element).ok_or_else(|| Refusal::new(300_313, "element not found"))?;
        found["content"] = text.into();
        Ok(())
    })
}

/// Returns whether the stream is open. Its automatic close is reported once with a separate error.
fn streams(card: &mut Card, now: Instant) -> Answer<()> {
    if card.streaming.is_some() && !card.grows(now) {
        card.expire();
    }
    if std::mem::take(&mut card.expired) {
        return Err(Refusal::new(200_850, "card streaming timeout"));
    }
    card.streaming.map(|_| ()).ok_or_else(|| Refusal::new(300_309, "streaming mode is closed"))
}

fn find<'a>(node: &'a mut Value, element: &str) -> Option<&'a mut Value> {
    if node["element_id"] == element {
        return Some(node);
    }
    match node {
        Value::Array(all) => all.iter_mut().find_map(|one| find(one, element)),
        Value::Object(fields) => fields.values_mut().find_map(|one| find(one, element)),
        _ => None,
    }
}

/// `cardkit.card.settings`: opens and closes the stream, sets the summary.
pub(crate) fn settings(world: &mut World, ask: &Ask) -> Answer {
    let text = ask.need("settings")?;
    if text.chars().count() > TEXT {
        return Err(Refusal::field("the max len of settings is 100000"));
    }
    let settings: Value = serde_json::from_str(text).map_err(|_| Refusal::field("settings is not a JSON"))?;
    let Some(config) = settings["config"].as_object().cloned() else {
        return Err(Refusal::new(300_309, "settings have no config"));
    };
    operate(world, ask, |card, now| {
        let Some(own) = card.json.as_object_mut() else { return Ok(()) };
        let kept = own.entry("config").or_insert_with(|| json!({}));
        if let Some(kept) = kept.as_object_mut() {
            kept.extend(config);
        }
        card.follow(now);
        Ok(())
    })
}

/// `cardkit.card.update`: replaces the card.
pub(crate) fn update(world: &mut World, ask: &Ask) -> Answer {
    let card = ask.body.get("card").cloned().unwrap_or_default();
    if card["type"] != "card_json" {
        return Err(Refusal::field("card.type must be card_json"));
    }
    let data = card["data"].as_str().ok_or_else(|| Refusal::field("card.data is required"))?;
    let json = parse(data)?;
    operate(world, ask, |card, now| {
        card.json = json;
        card.follow(now);
        Ok(())
    })
}

/// `cardkit.card.batch_update`: several settings and elements.
pub(crate) fn batch(world: &mut World, ask: &Ask) -> Answer {
    let text = ask.need("actions")?;
    let actions: Vec<Value> =
        serde_json::from_str(text).map_err(|_| Refusal::field("actions is not a JSON array"))?;
    operate(world, ask, |card, now| actions.iter().try_for_each(|action| act(card, action, now)))
}

fn act(card: &mut Card, action: &Value, now: Instant) -> Answer<()> {
    let params = &action["params"];
    match action["action"].as_str().unwrap_or_default() {
        "partial_update_setting" => {
            let Some(config) = params.pointer("/settings/config").and_then(Value::as_object) else {
                return Err(Refusal::new(300_309, "settings have no config"));
            };
            if let Some(own) = card.json.get_mut("config").and_then(Value::as_object_mut) {
                own.extend(config.clone());
            }
            card.follow(now);
            Ok(())
        }
        "update_element" => {
            let id = params["element_id"].as_str().unwrap_or_default();
            let found = find(&mut card.json, id).ok_or_else(|| Refusal::new(300_313, "element not found"))?;
            *found = params["element"].clone();
            Ok(())
        }
        other => Err(Refusal::field(&format!("unknown action {other}"))),
    }
}

/// Executes an operation on a card, with the common checks.
fn operate(world: &mut World, ask: &Ask, change: impl FnOnce(&mut Card, Instant) -> Answer<()>) -> Answer {
    let now = Instant::now();
    let id = ask.id("card_id").to_owned();
    let uuid = ask.uuid(UUID)?;
    let sequence = ask.body.get("sequence").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=i64::from(i32::MAX)).contains(&sequence) {
        return Err(Refusal::field("sequence must be a positive int32"));
    }
    world.reads(&Value::Object(ask.body.clone()).to_string())?;
    let World { cards, meter, .. } = world;
    let card = cards.get_mut(&id).ok_or_else(|| Refusal::new(200_740, "card is not exist"))?;
    if now.duration_since(card.made) > LIFE {
        return Err(Refusal::new(200_750, "card is expired"));
    }
    if uuid.as_ref().is_some_and(|uuid| card.uuids.contains(uuid)) {
        return Err(Refusal::new(200_770, "uuid is duplicated"));
    }
    if sequence <= card.sequence {
        let last = card.sequence;
        return Err(Refusal::new(300_317, format!("sequence is not increasing: {sequence} after {last}")));
    }
    meter.ten(&id)?;
    let before = card.clone();
    change(card, now)?;
    if let Err(refusal) = fits(card) {
        *card = before;
        return Err(refusal);
    }
    card.sequence = sequence;
    card.uuids.extend(uuid);
    if let Some(message) = card.message.clone() {
        world.note(&message);
    }
    Ok(Done::Data(json!({})))
}

fn fits(card: &Card) -> Answer<()> {
    if card.json.to_string().len() > CARD {
        return Err(Refusal::new(200_860, "card over max size"));
    }
    content::check_card(&card.json).map_err(|(code, why)| Refusal::new(code, why))
}
