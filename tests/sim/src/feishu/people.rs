//! User actions: writing, forwarding, pressing, recalling. Each is sent to the bot as an event.

use super::{
    ask::Part,
    content::Face,
    files,
    types::{Kind, Message, Press, Stored},
    wire,
    world::{World, unix_ms},
};
use crate::platform::Words;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

/// A user's message of any kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The chat.
    pub chat: String,
    /// The user.
    pub person: String,
    /// The platform's `message_type`; empty means `text`.
    pub kind: String,
    /// The content. A string is a text.
    pub content: Value,
    /// Mentions: the placeholder in the content, the ID, the name.
    pub mentions: Vec<(String, String, String)>,
    /// The message that it replies to.
    pub answers: Option<String>,
    /// Whether it starts a thread under that message, if there is none.
    pub thread: bool,
    /// Whether another bot sends it.
    pub bot: bool,
    /// Age in milliseconds.
    pub age: i64,
    /// The messages of a forwarded bundle: sender, kind, content.
    pub bundle: Vec<(String, String, Value)>,
}

impl World {
    pub(crate) fn add_person(&mut self, name: &str) -> String {
        let id = self.fresh("ou_");
        self.people.insert(id.clone(), name.to_owned());
        let chat = self.fresh("oc_");
        self.add_chat(&chat, Kind::Private, name, &[&id]);
        id
    }

    /// Returns a user's private chat.
    pub(crate) fn private(&self, person: &str) -> Option<String> {
        let own = |chat: &super::types::Chat| chat.kind == Kind::Private && chat.members.contains(person);
        self.chats.iter().find(|(_, chat)| own(chat)).map(|(id, _)| id.clone())
    }

    /// Sends a user's message; files are separate messages before the text, images with text are one post.
    pub(crate) fn write(&mut self, words: &Words) -> String {
        let mut said = Said {
            chat: words.chat.clone(),
            person: words.person.clone(),
            answers: words.answers.clone(),
            ..Said::default()
        };
        let private = self.chats.get(&words.chat).is_some_and(|chat| chat.kind == Kind::Private);
        if words.to_bot && !private {
            said.mentions = vec![("@_user_1".to_owned(), self.bot.clone(), self.options.name.clone())];
        }
        let mark = if said.mentions.is_empty() { "" } else { "@_user_1 " };
        let pictures = words.files.iter().all(|(_, bytes)| files::picture(bytes));
        if !words.files.is_empty() && pictures && !words.text.is_empty() {
            said.kind = "post".to_owned();
            said.content = self.post(&words.text, &words.files, !mark.is_empty());
            return self.say(&said);
        }
        let mut last = String::new();
        for (name, bytes) in &words.files {
            let (kind, content) = self.file(name, bytes);
            let file = Said { kind: kind.to_owned(), content, mentions: Vec::new(), ..said.clone() };
            last = self.say(&file);
        }
        if words.text.is_empty() && !words.files.is_empty() {
            return last;
        }
        said.content = format!("{mark}{}", words.text).into();
        self.say(&said)
    }

    fn post(&mut self, text: &str, files: &[(String, Bytes)], mention: bool) -> Value {
        let mut first = vec![json!({"tag": "text", "text": text, "style": []})];
        if mention {
            first.insert(
                0,
                json!({"tag": "at", "user_id": "@_user_1", "user_name": self.options.name, "style": []}),
            );
        }
        let mut lines = vec![Value::Array(first)];
        for (name, bytes) in files {
            lines.push(json!([{"tag": "img", "image_key": self.keep("img_v3_", name, bytes), "width": 1, "height": 1}]));
        }
        json!({"title": "", "content": lines})
    }

    fn file(&mut self, name: &str, bytes: &Bytes) -> (&'static str, Value) {
        if files::picture(bytes) {
            return ("image", json!({"image_key": self.keep("img_v3_", name, bytes)}));
        }
        ("file", json!({"file_key": self.keep("file_v3_", name, bytes), "file_name": name}))
    }

    pub(crate) fn keep(&mut self, prefix: &str, name: &str, bytes: &Bytes) -> String {
        let key = self.fresh(prefix);
        let part = Part { name: name.to_owned(), bytes: bytes.clone() };
        self.files.insert(key.clone(), Stored { part, own: false });
        key
    }

    pub(crate) fn say(&mut self, said: &Said) -> String {
        let message = self.compose(said);
        let (id, concerns) = (message.id.clone(), self.concerns_bot(&message));
        let event = wire::received(self, &message);
        self.put(message);
        if concerns {
            let event = if said.bot { as_bot(event) } else { event };
            self.tell_of("im.message.receive_v1", &event, Some(&id));
        }
        id
    }

    fn compose(&mut self, said: &Said) -> Message {
        let kind = if said.kind.is_empty() { "text" } else { &said.kind };
        let content = match &said.content {
            Value::String(text) => json!({"text": text}),
            other => other.clone(),
        };
        let parent = said.answers.as_ref().and_then(|id| self.messages.get(id)).cloned();
        let opened = said.thread && parent.as_ref().is_some_and(|parent| parent.thread.is_none());
        let topics = opened || self.chats.get(&said.chat).is_some_and(|chat| chat.kind.opens_topics());
        let thread = parent.as_ref().and_then(|parent| parent.thread.clone());
        let thread = thread.or_else(|| topics.then(|| self.fresh("omt_")));
        let bundle = said.bundle.iter().map(|(person, kind, content)| Said {
            chat: said.chat.clone(),
            person: person.clone(),
            kind: kind.clone(),
            content: content.clone(),
            ..Said::default()
        });
        let bundle: Vec<Said> = bundle.collect();
        Message {
            id: self.fresh("om_"),
            chat: said.chat.clone(),
            from: Some(said.person.clone()),
            kind: kind.to_owned(),
            content: content.to_string(),
            mentions: said.mentions.iter().map(|(key, id, name)| wire::mention(key, id, name)).collect(),
            root: parent.as_ref().map(|parent| parent.root.clone().unwrap_or_else(|| parent.id.clone())),
            parent: parent.map(|parent| parent.id),
            thread,
            card: None,
            created: unix_ms() - said.age,
            at: Instant::now(),
            edits: 0,
            deleted: false,
            reactions: Vec::new(),
            face: Face::default(),
            history: Vec::new(),
            bundle: bundle.iter().map(|inner| self.compose(inner)).collect(),
        }
    }

    /// Returns whether the bot receives a message: all in a private chat; in a group mentions, or all with the scope.
    fn concerns_bot(&self, message: &Message) -> bool {
        let Some(chat) = self.chats.get(&message.chat) else { return false };
        let mentioned = message.mentions.iter().any(|one| one["id"]["open_id"] == self.bot.as_str());
        chat.closed.is_none() && (chat.kind == Kind::Private || self.options.hears_all || mentioned)
    }

    pub(crate) fn recall(&mut self, chat: &str, message: &str) -> bool {
        let Some(found) = self.messages.get_mut(message).filter(|one| one.chat == chat && one.from.is_some())
        else {
            return false;
        };
        found.deleted = true;
        let event = json!({
            "message_id": message, "chat_id": chat, "recall_time": unix_ms().to_string(),
            "recall_type": "message_owner",
        });
        self.tell_of("im.message.recalled_v1", &event, None);
        true
    }

    pub(crate) fn press(&mut self, chat: &str, person: &str, message: &str, label: &str) -> bool {
        self.press_with(chat, person, message, label, None)
    }

    /// Presses a button, with the values of its form.
    pub(crate) fn press_with(
        &mut self,
        chat: &str,
        person: &str,
        message: &str,
        label: &str,
        form: Option<&Value>,
    ) -> bool {
        let face = self.face(message);
        let shown = self.messages.get(message).is_some_and(|one| one.chat == chat && !one.deleted);
        let Some((_, value)) = face.buttons.iter().find(|(text, _)| text == label).filter(|_| shown) else {
            return false;
        };
        let mut event = json!({
            "operator": {
                "tenant_key": wire::TENANT, "open_id": person,
                "union_id": wire::ids(person)["union_id"], "user_id": wire::ids(person)["user_id"],
            },
            "token": self.fresh("c-"),
            "action": {"value": value, "tag": "button", "timezone": "UTC"},
            "host": "im_message",
            "context": {"open_message_id": message, "open_chat_id": chat},
        });
        if let Some(values) = form {
            event["action"]["name"] = "submit".into();
            event["action"]["form_value"] = values.clone();
        }
        let id = self.tell_of("card.action.trigger", &event, None);
        self.presses.push(Press { event: id, value: value.clone(), answer: None });
        true
    }
}

fn as_bot(mut event: Value) -> Value {
    event["sender"]["sender_type"] = "app".into();
    event
}
