//! Cards: created, delivered, streamed, updated, and pressed.

use super::{
    error::{Answer, Refusal},
    server::Ask,
    stream::CARDS,
    world::{Body, World},
};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// A card.
#[derive(Default)]
pub(crate) struct Card {
    pub(crate) values: Map<String, Value>,
    /// The chat of its delivery.
    pub(crate) chat: Option<String>,
    pub(crate) state: State,
    /// Every text that users saw, in order.
    pub(crate) shown: Vec<String>,
    /// Applied updates of the stream: each counts once.
    done: HashSet<String>,
}

/// State of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// It waits or is growing.
    #[default]
    Growing,
    Finished,
    Failed,
}

impl Card {
    /// Returns the card's current text.
    pub(crate) fn text<'a>(&'a self, key: &str) -> &'a str {
        self.values.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the labels of the buttons and their values.
    pub(crate) fn buttons(&self, key: &str) -> Vec<(String, String)> {
        let all: Vec<Value> = serde_json::from_str(self.text(key)).unwrap_or_default();
        let word = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
        all.iter().map(|one| (word(one, "text"), word(one, "id"))).collect()
    }

    fn note(&mut self, key: &str) {
        let text = self.text(key).to_owned();
        if !text.is_empty() && self.shown.last() != Some(&text) {
            self.shown.push(text);
        }
    }
}

/// Answers `card/instances/createAndDeliver`.
pub(crate) fn create_and_deliver(world: &mut World, ask: &Ask) -> Answer {
    create(world, ask)?;
    deliver(world, ask)
}

/// Answers a POST to `card/instances`. A second card with the same ID is the first one.
pub(crate) fn create(world: &mut World, ask: &Ask) -> Answer {
    world.scope("Card.Instance.Write")?;
    if ask.must("cardTemplateId")? != world.options.template {
        return Err(Refusal::api(400, "param.templateNotExist", "the card template is not there"));
    }
    let id = ask.must("outTrackId")?.to_owned();
    if !["STREAM", "HTTP"].contains(&ask.must("callbackType")?) {
        return Err(Refusal::invalid("callbackType", "STREAM or HTTP"));
    }
    let values = values(world, ask)?;
    if !world.cards.contains_key(&id) {
        let mut card = Card { state: state(&values, State::Growing), values, ..Card::default() };
        card.note(&world.options.content_key);
        world.cards.insert(id.clone(), card);
    }
    Ok(json!({"success": true, "result": {"outTrackId": id}}))
}

/// Answers `card/instances/deliver`. HTTP 200 does not mean that it is visible.
pub(crate) fn deliver(world: &mut World, ask: &Ask) -> Answer {
    let id = ask.must("outTrackId")?.to_owned();
    let space = ask.must("openSpaceId")?.to_owned();
    if !world.cards.contains_key(&id) {
        return Err(Refusal::api(400, "param.cardNotExist", "the card is not there"));
    }
    let (chat, pings) = match target(world, ask, &space) {
        Ok(found) => found,
        Err(why) => return Ok(delivered(&id, &space, Err(&why))),
    };
    if world.undelivered > 0 {
        world.undelivered -= 1;
        return Ok(delivered(&id, &space, Err("the robot may not deliver cards here")));
    }
    let again = world.cards.get(&id).is_some_and(|card| card.chat.is_some());
    if !again {
        world.show(&chat, &id, Body::Card, pings)?;
        if let Some(card) = world.cards.get_mut(&id) {
            card.chat = Some(chat);
        }
    }
    Ok(delivered(&id, &space, Ok(())))
}

/// Returns the chat of a space, and whether its recipients are listed.
fn target(world: &World, ask: &Ask, space: &str) -> Result<(String, bool), String> {
    let named = |model: &str| ask.body.get(model).is_some_and(|model| model["atUserIds"].is_object());
    if let Some(group) = space.strip_prefix("dtv1.card//IM_GROUP.") {
        let model = ask.body.get("imGroupOpenDeliverModel").ok_or("imGroupOpenDeliverModel is missing")?;
        if model["robotCode"] != world.options.client_id.as_str() {
            return Err("the robot is not in this conversation".to_owned());
        }
        let known = world.chats.get(group).is_some_and(|chat| chat.group);
        return known
            .then(|| (group.to_owned(), named("imGroupOpenDeliverModel")))
            .ok_or_else(|| "spaceId is illegal".to_owned());
    }
    if let Some(staff) = space.strip_prefix("dtv1.card//IM_ROBOT.") {
        if ask.body.get("imRobotOpenDeliverModel").is_none_or(|model| model["spaceType"] != "IM_ROBOT") {
            return Err("imRobotOpenDeliverModel is missing".to_owned());
        }
        let known = world.people.iter().any(|person| person.staff.as_deref() == Some(staff));
        return known.then(|| (staff.to_owned(), false)).ok_or_else(|| "spaceId is illegal".to_owned());
    }
    Err("openSpaceId is illegal".to_owned())
}

fn delivered(id: &str, space: &str, how: Result<(), &str>) -> Value {
    let kind = if space.contains("IM_GROUP") { "IM_GROUP" } else { "IM_ROBOT" };
    let result = json!({
        "spaceType": kind, "spaceId": space.rsplit_once("//").map_or(space, |(_, rest)| rest),
        "success": how.is_ok(), "errorMsg": how.err().unwrap_or_default(), "carrierId": format!("carrier-{id}"),
    });
    json!({"success": true, "result": {"outTrackId": id, "deliverResults": [result]}})
}

/// Answers a PUT to `card/streaming`.
pub(crate) fn stream(world: &mut World, ask: &Ask) -> Answer {
    world.scope("Card.Streaming.Write")?;
    let (id, guid, key) = (ask.must("outTrackId")?, ask.must("guid")?, ask.must("key")?);
    let content = ask.body.get("content").and_then(Value::as_str);
    let content = content.ok_or_else(|| Refusal::missing("content"))?.to_owned();
    let flag = |name: &str| ask.body.get(name).and_then(Value::as_bool).unwrap_or(false);
    let limit = world.card_limit.unwrap_or(usize::MAX);
    let own = world.options.content_key.clone();
    let unknown = || Refusal::api(400, "param.cardNotExist", "the card is not there");
    let card = world.cards.get_mut(id).ok_or_else(unknown)?;
    // An unknown variable of the template fails like this, without details.
    if key != own {
        return Err(Refusal::api(500, "unknownError", "unknownError"));
    }
    if card.done.contains(guid) {
        return Ok(json!({"success": true, "result": true}));
    }
    if !flag("isFull") {
        return Err(Refusal::invalid("isFull", "a Markdown variable takes whole contents only"));
    }
    if content.chars().count() > limit {
        return Err(Refusal::invalid("content", "the content is too long"));
    }
    if card.state != State::Growing {
        return Err(Refusal::api(400, "param.cardFinished", "the card is finished"));
    }
    card.done.insert(guid.to_owned());
    card.values.insert(own.clone(), content.into());
    card.note(&own);
    card.state = match (flag("isError"), flag("isFinalize")) {
        (true, _) => State::Failed,
        (false, true) => State::Finished,
        (false, false) => State::Growing,
    };
    Ok(json!({"success": true, "result": true}))
}

/// Answers a PUT to `card/instances`.
pub(crate) fn update(world: &mut World, ask: &Ask) -> Answer {
    world.scope("Card.Instance.Write")?;
    let id = ask.must("outTrackId")?.to_owned();
    let values = values(world, ask)?;
    let key = world.options.content_key.clone();
    let unknown = || Refusal::api(400, "param.cardNotExist", "the card is not there");
    let card = world.cards.get_mut(&id).ok_or_else(unknown)?;
    card.state = state(&values, card.state);
    // Without this option the whole content is replaced.
    if ask.body.get("cardUpdateOptions").is_none_or(|options| options["updateCardDataByKey"] != true) {
        card.values.clear();
    }
    card.values.extend(values);
    card.note(&key);
    Ok(json!({"success": true, "result": true}))
}

/// Returns the variables in a call, which must all be texts.
fn values(world: &World, ask: &Ask) -> Answer<Map<String, Value>> {
    let map = ask.body.get("cardData").and_then(|data| data["cardParamMap"].as_object());
    let map = map.ok_or_else(|| Refusal::missing("cardData"))?.clone();
    if let Some((name, _)) = map.iter().find(|(_, value)| !value.is_string()) {
        return Err(Refusal::invalid("cardParamMap", &format!("{name} is no string")));
    }
    let text = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or_default();
    if text(&world.options.content_key).chars().count() > world.card_limit.unwrap_or(usize::MAX) {
        return Err(Refusal::invalid("cardParamMap", "the content is too long"));
    }
    Ok(map)
}

fn state(values: &Map<String, Value>, before: State) -> State {
    match values.get("flowStatus").and_then(Value::as_str) {
        Some("3") => State::Finished,
        Some("5") => State::Failed,
        Some(_) => State::Growing,
        None => before,
    }
}

/// Presses the button with a label. Returns `false` if there is none.
pub(crate) fn press(world: &mut World, chat: &str, person: &str, card: &str, label: &str) -> bool {
    let key = world.options.buttons_key.clone();
    let Some(found) = world.cards.get(card).filter(|card| card.chat.as_deref() == Some(chat)) else {
        return false;
    };
    let buttons = found.buttons(&key);
    let Some((_, id)) = buttons.into_iter().find(|(text, _)| text == label) else { return false };
    let group = world.chats.get(chat).is_some_and(|chat| chat.group);
    let content = json!({"cardPrivateData": {"actionIds": [id], "params": {}}});
    let data = json!({
        "outTrackId": card, "userId": person, "corpId": "dingcorp0001", "userIdType": 1, "type": "actionCallback",
        "content": content.to_string(), "value": content.to_string(), "extension": "{}",
        "spaceType": if group { "IM_GROUP" } else { "IM_ROBOT" }, "spaceId": chat,
    });
    let of = format!("press-{}", world.fresh());
    world.tell("CALLBACK", CARDS, &of, data);
    true
}
