//! User actions, the bot's messages, and the resulting events.

use super::{
    blocks, text, wire,
    world::{APP, Author, BOT_USER, Channel, Message, Stored, TEAM, World},
};
use crate::platform::Words;
use serde_json::{Value, json};

impl World {
    pub(crate) fn add_person(&mut self, name: &str) -> String {
        let id = self.id('U');
        self.people.insert(id.clone(), name.to_owned());
        let channel = self.id('D');
        let members = [id.clone()].into();
        let with = Some(id.clone());
        let of = Channel {
            id: channel.clone(),
            title: String::new(),
            with,
            members,
            bot_in: true,
            ..Channel::default()
        };
        self.channels.insert(channel, of);
        id
    }

    pub(crate) fn private(&self, person: &str) -> String {
        let own = self.channels.values().find(|channel| channel.with.as_deref() == Some(person));
        own.map_or_else(String::new, |channel| channel.id.clone())
    }

    pub(crate) fn add_channel(&mut self, title: &str, members: &[&str]) -> String {
        let id = self.id('C');
        let members = members.iter().map(|member| (*member).to_owned()).collect();
        let of =
            Channel { id: id.clone(), title: title.to_owned(), members, bot_in: true, ..Channel::default() };
        self.channels.insert(id.clone(), of);
        id
    }

    /// Sends a user's message. Returns its ID; empty if the user is not a member.
    pub(crate) fn write(&mut self, words: &Words) -> String {
        let Some(of) = self.channels.get(&words.chat).filter(|of| of.members.contains(&words.person)) else {
            return String::new();
        };
        let mention = words.to_bot && of.with.is_none() && !words.text.contains(&format!("<@{BOT_USER}"));
        let escaped = words.text.clone();
        let text = if mention { format!("<@{BOT_USER}> {escaped}") } else { escaped };
        let thread = words.answers.as_deref().and_then(|ts| of.root(ts));
        let ts = self.ts();
        let files = words.files.iter().map(|(name, bytes)| self.keep(name, bytes.clone())).collect();
        let from = Author::User(words.person.clone());
        put(self, &words.chat, Message { ts: ts.clone(), thread, from, text, files, ..Message::default() });
        ts
    }

    pub(crate) fn keep(&mut self, name: &str, bytes: bytes::Bytes) -> String {
        let id = self.id('F');
        self.files.insert(id.clone(), Stored { name: name.to_owned(), bytes, announced: None, shared: true });
        id
    }

    pub(crate) fn person_edits(&mut self, chat: &str, ts: &str, text: &str) -> bool {
        let of = self.channels.get_mut(chat).and_then(|of| of.message_mut(ts));
        let Some(message) = of.filter(|message| message.from != Author::Bot) else { return false };
        // The mention of the bot stays.
        let mention = format!("<@{BOT_USER}> ");
        let prefix = if message.text.starts_with(&mention) { mention.as_str() } else { "" };
        message.text = format!("{prefix}{text}");
        message.edited = true;
        changed(self, chat, ts);
        true
    }

    pub(crate) fn person_recalls(&mut self, chat: &str, ts: &str) -> bool {
        let of = self.channels.get_mut(chat).and_then(|of| of.message_mut(ts));
        let Some(message) = of.filter(|message| message.from != Author::Bot) else { return false };
        message.deleted = true;
        gone(self, chat, ts);
        true
    }

    pub(crate) fn press(&mut self, chat: &str, person: &str, ts: &str, label: &str) -> bool {
        let trigger = self.trigger(person);
        let response = self.response_url();
        let Some(of) = self.channels.get(chat) else { return false };
        let Some(message) = of.message(ts) else { return false };
        let Some((_, button)) = blocks::buttons(&message.blocks).find(|(says, _)| *says == label) else {
            return false;
        };
        let mut action = button.clone();
        action["action_ts"] = format!("{}.000001", super::world::unix_now()).into();
        let name = self.people.get(person).cloned().unwrap_or_default();
        let mut container = json!({
            "type": "message", "message_ts": ts, "channel_id": chat, "is_ephemeral": false,
        });
        if let Some(thread) = &message.thread {
            container["thread_ts"] = thread.as_str().into();
        }
        let payload = json!({
            "type": "block_actions", "team": {"id": TEAM, "domain": "simulated"}, "api_app_id": APP,
            "user": {"id": person, "username": name.to_lowercase(), "name": name.to_lowercase(), "team_id": TEAM},
            "token": "verification-token-of-old-0", "container": container, "trigger_id": trigger,
            "channel": {"id": chat, "name": if of.with.is_some() { "directmessage" } else { &of.title }},
            "message": wire::message(self, of, message, true), "response_url": response,
            "actions": [action], "state": {"values": {}},
        });
        self.tell("interactive", payload, false);
        true
    }

    /// Sends a user's command that the app has registered.
    pub(crate) fn command(&mut self, chat: &str, person: &str, command: &str, words: &str) -> bool {
        let trigger = format!("{}.1000.{:032x}", self.fresh(), 0xc0de);
        let response = self.response_url();
        let Some(of) = self.channels.get(chat).filter(|of| of.members.contains(person)) else { return false };
        let title = if of.with.is_some() { "directmessage" } else { of.title.as_str() };
        let payload = json!({
            "token": "verification-token-of-old-0", "team_id": TEAM, "team_domain": "simulated",
            "channel_id": chat, "channel_name": title, "user_id": person,
            "user_name": self.people.get(person).map(|name| name.to_lowercase()), "command": command, "text": words,
            "api_app_id": APP, "is_enterprise_install": "false", "response_url": response,
            "trigger_id": trigger,
        });
        self.tell("slash_commands", payload, true);
        true
    }

    fn response_url(&mut self) -> String {
        let n = self.fresh();
        format!("{}/response/{n}", self.url)
    }

    fn event(&mut self, chat: &str, ts: &str, event: &Value) {
        let id = self.id('E').replacen("E0", "Ev0", 1);
        let payload = wire::callback(event, &id);
        self.remember(chat, ts, &payload);
        self.tell("events_api", payload, false);
    }

    fn hears(&self, of: &Channel) -> bool {
        of.bot_in && (of.with.is_some() || self.options.all_messages)
    }
}

/// Adds a message to a channel and reports it to the bot.
pub(crate) fn put(world: &mut World, chat: &str, message: Message) {
    let ts = message.ts.clone();
    if let Some(of) = world.channels.get_mut(chat) {
        of.messages.push(message);
    }
    shown_anew(world, chat, &ts);
    let Some(of) = world.channels.get(chat) else { return };
    let Some(message) = of.message(&ts) else { return };
    let own = message.from == Author::Bot;
    if own && !world.options.own_messages {
        return;
    }
    let mut event = wire::message(world, of, message, false);
    event["channel"] = chat.into();
    event["event_ts"] = ts.as_str().into();
    event["channel_type"] = of.kind().into();
    let mentioned = of.with.is_none() && of.bot_in && message.text.contains(&format!("<@{BOT_USER}")) && !own;
    let hears = world.hears(of);
    if hears {
        world.event(chat, &ts, &event);
    }
    if mentioned {
        event["type"] = "app_mention".into();
        let fields = event.as_object_mut();
        fields.and_then(|fields| fields.remove("channel_type"));
        event.as_object_mut().and_then(|fields| fields.remove("subtype"));
        world.event(chat, &ts, &event);
    }
}

/// Records the current content of the bot's message.
pub(crate) fn shown_anew(world: &mut World, chat: &str, ts: &str) {
    let Some(message) = world.channels.get(chat).and_then(|of| of.message(ts)) else { return };
    let seen = text::visible(world, message);
    let message = world.channels.get_mut(chat).and_then(|of| of.message_mut(ts));
    if let Some(message) = message
        && message.history.last() != Some(&seen)
    {
        message.history.push(seen);
    }
}

/// Reports a changed message: `message_changed`.
pub(crate) fn changed(world: &mut World, chat: &str, ts: &str) {
    shown_anew(world, chat, ts);
    let Some(of) = world.channels.get(chat) else { return };
    let Some(message) = of.message(ts) else { return };
    if !world.hears(of) || (message.from == Author::Bot && !world.options.own_messages) {
        return;
    }
    let now = wire::message(world, of, message, false);
    let mut before = now.clone();
    let old = message.history.iter().rev().nth(1).cloned().unwrap_or_default();
    before["text"] = old.into();
    let kind = of.kind();
    let at = world.ts();
    let event = json!({
        "type": "message", "subtype": "message_changed", "message": now, "previous_message": before,
        "channel": chat, "hidden": true, "ts": at, "event_ts": at, "channel_type": kind,
    });
    world.event(chat, ts, &event);
}

/// Reports a deleted message: `message_deleted`.
pub(crate) fn gone(world: &mut World, chat: &str, ts: &str) {
    let Some(of) = world.channels.get(chat) else { return };
    let Some(message) = of.messages.iter().find(|message| message.ts == ts) else { return };
    if !world.hears(of) || (message.from == Author::Bot && !world.options.own_messages) {
        return;
    }
    let before = wire::message(world, of, message, false);
    let kind = of.kind();
    let at = world.ts();
    let event = json!({
        "type": "message", "subtype": "message_deleted", "previous_message": before, "deleted_ts": ts,
        "channel": chat, "hidden": true, "ts": at, "event_ts": at, "channel_type": kind,
    });
    world.event(chat, ts, &event);
}
