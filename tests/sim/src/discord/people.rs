//! User actions, new messages, and the resulting events.

use super::{
    interactions, messages, text, wire,
    world::{BOT, Channel, ChannelKind, GUILD, LOADING, Message, World, unix_ms},
};
use crate::platform::Words;
use serde_json::{Value, json};
use tokio::time::Instant;

impl World {
    pub(crate) fn add_person(&mut self, name: &str) -> String {
        let id = self.snowflake().to_string();
        self.people.insert(id.clone(), name.to_owned());
        let channel = self.snowflake().to_string();
        let members = [id.clone()].into();
        let kind = ChannelKind::Direct(id.clone());
        let of = Channel { id: channel.clone(), kind, members, ..Channel::default() };
        self.channels.insert(channel, of);
        id
    }

    pub(crate) fn private(&self, person: &str) -> String {
        let own =
            self.channels.values().find(|channel| channel.kind == ChannelKind::Direct(person.to_owned()));
        own.map_or_else(String::new, |channel| channel.id.clone())
    }

    pub(crate) fn add_channel(&mut self, title: &str, members: &[&str]) -> String {
        let id = self.snowflake().to_string();
        let members = members.iter().map(|member| (*member).to_owned()).collect();
        let of = Channel { id: id.clone(), name: title.to_owned(), members, ..Channel::default() };
        let json = wire::channel(self, &of);
        self.channels.insert(id.clone(), of);
        self.tell("CHANNEL_CREATE", &json);
        id
    }

    /// Sends a user's message. Returns its ID; empty if the user is not a member.
    pub(crate) fn write(&mut self, words: &Words) -> String {
        let Some(of) = self.channels.get(&words.chat).filter(|of| of.members.contains(&words.person)) else {
            return String::new();
        };
        let named = words.text.contains(&format!("<@{BOT}>"));
        let content = match words.to_bot && !of.is_direct() && !named {
            true => format!("<@{BOT}> {}", words.text),
            false => words.text.clone(),
        };
        let answered: Option<u64> = words.answers.as_deref().and_then(|id| id.parse().ok());
        let answered = answered.and_then(|id| self.messages.get(&id)).filter(|found| !found.deleted);
        // An answer to a message in a thread belongs to the thread.
        let channel = answered.map_or_else(|| words.chat.clone(), |found| found.channel.clone());
        let answers = answered.map(|found| found.id.to_string());
        let files =
            words.files.iter().map(|(name, bytes)| messages::keep(self, &channel, name, bytes.clone()));
        let files = files.collect();
        let author = words.person.clone();
        let message = Message {
            channel,
            author,
            content: content.trim().to_owned(),
            answers,
            files,
            ..Message::default()
        };
        put(self, message).to_string()
    }

    pub(crate) fn person_edits(&mut self, chat: &str, id: &str, text: &str) -> bool {
        let Some(channel) = self.place(chat, id) else { return false };
        let Ok(message) = self.message_mut(&channel, id) else { return false };
        if message.is_own() {
            return false;
        }
        // The mention of the bot stays.
        let mention = format!("<@{BOT}> ");
        let prefix = if message.content.starts_with(&mention) { mention.as_str() } else { "" };
        message.content = format!("{prefix}{text}");
        message.edited = Some(unix_ms());
        changed(self, &channel, id);
        true
    }

    pub(crate) fn person_recalls(&mut self, chat: &str, id: &str) -> bool {
        let Some(channel) = self.place(chat, id) else { return false };
        if self.message(&channel, id).is_ok_and(Message::is_own) {
            return false;
        }
        gone(self, &channel, id);
        true
    }

    /// Returns the channel or thread of a message in a chat.
    pub(crate) fn place(&self, chat: &str, id: &str) -> Option<String> {
        self.with_threads(chat).into_iter().find(|channel| self.message(channel, id).is_ok())
    }

    pub(crate) fn press(&mut self, chat: &str, person: &str, id: &str, label: &str) -> bool {
        let Some(channel) = self.place(chat, id) else { return false };
        let Ok(message) = self.message(&channel, id) else { return false };
        let Some(button) = buttons(message).find(|button| button["label"] == label) else { return false };
        let data = json!({"component_type": 2, "custom_id": button["custom_id"], "id": 1});
        let told = wire::message(self, message);
        interactions::begin(self, &channel, person, 3, &data, Some(told));
        true
    }

    /// Uses one of the bot's registered commands. Returns `false` if there is no such command.
    pub(crate) fn command(&mut self, chat: &str, person: &str, name: &str, words: &str) -> bool {
        let Some(command) = self.commands.iter().find(|command| command["name"] == name) else {
            return false;
        };
        let mut data = json!({"id": command["id"], "name": name, "type": 1});
        let option = command["options"].as_array().and_then(|options| options.first());
        if let (Some(option), false) = (option, words.is_empty()) {
            data["options"] = json!([{"name": option["name"], "type": option["type"], "value": words}]);
        }
        interactions::begin(self, chat, person, 2, &data, None);
        true
    }
}

/// The buttons of a message.
pub(crate) fn buttons(message: &Message) -> impl Iterator<Item = &Value> {
    message.components.iter().flat_map(|row| row["components"].as_array().into_iter().flatten())
}

/// Adds a message to a channel and reports it to the bot.
pub(crate) fn put(world: &mut World, message: Message) -> u64 {
    let id = world.snowflake();
    let channel = message.channel.clone();
    let message = Message { id, sent: Some(Instant::now()), ..message };
    world.messages.insert(id, message);
    shown_anew(world, id);
    announce(world, &channel, id, "MESSAGE_CREATE");
    id
}

/// Repeats the event of a message.
pub(crate) fn repeat(world: &mut World, chat: &str, id: &str) {
    if let (Some(channel), Ok(id)) = (world.place(chat, id), id.parse()) {
        announce(world, &channel, id, "MESSAGE_CREATE");
    }
}

fn announce(world: &mut World, channel: &str, id: u64, kind: &str) {
    let (Some(of), Some(message)) = (world.channels.get(channel), world.messages.get(&id)) else { return };
    let event = wire::event(world, of, message);
    world.tell(kind, &event);
}

fn shown_anew(world: &mut World, id: u64) {
    let Some(message) = world.messages.get(&id) else { return };
    let seen = seen(world, message);
    if let Some(message) = world.messages.get_mut(&id)
        && message.history.last() != Some(&seen)
    {
        message.history.push(seen);
    }
}

/// Returns the visible text of a message.
pub(crate) fn seen(world: &World, message: &Message) -> String {
    if message.flags & LOADING != 0 {
        return "pudu is thinking…".to_owned();
    }
    text::visible(world, &message.content)
}

pub(crate) fn changed(world: &mut World, channel: &str, id: &str) {
    let Ok(id) = id.parse() else { return };
    shown_anew(world, id);
    announce(world, channel, id, "MESSAGE_UPDATE");
}

pub(crate) fn gone(world: &mut World, channel: &str, id: &str) {
    let Ok(message) = world.message_mut(channel, id) else { return };
    message.deleted = true;
    let direct = world.channels.get(channel).is_some_and(Channel::is_direct);
    let mut event = json!({"id": id, "channel_id": channel});
    if !direct {
        event["guild_id"] = GUILD.into();
    }
    world.tell("MESSAGE_DELETE", &event);
}

/// Starts a thread from a message.
pub(crate) fn open_thread(world: &mut World, parent: &str, id: &str, name: &str, owner: &str) -> Value {
    let members = world.channels.get(parent).map(|of| of.members.clone()).unwrap_or_default();
    let kind = ChannelKind::Thread { parent: parent.to_owned(), owner: owner.to_owned() };
    let thread = Channel { id: id.to_owned(), name: name.to_owned(), kind, members, archived: false };
    let mut json = wire::channel(world, &thread);
    world.channels.insert(id.to_owned(), thread);
    json["newly_created"] = true.into();
    world.tell("THREAD_CREATE", &json);
    json
}
