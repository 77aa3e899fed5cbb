//! User actions: messages with images and files, reported to the robot in the platform's format.

use super::{
    files,
    stream::MESSAGES,
    world::{Chat, Person, Session, Standing, World, unix_ms},
};
use crate::platform::Words;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Lifetime of a session webhook.
const SESSION: Duration = Duration::from_millis(5_400_200);

impl World {
    /// Adds a user, from the organization or from outside; returns the bot's ID of them.
    pub(crate) fn add_person(&mut self, name: &str, staff: bool) -> String {
        let number = self.fresh();
        let person = Person {
            staff: staff.then(|| format!("0160{number:06}")),
            sender: format!("$:LWCP_v1:$sim{number}=="),
            name: name.to_owned(),
            standing: Standing::Fine,
            alone: format!("cidP{number}=="),
        };
        let id = person.id().to_owned();
        let chat = Chat { members: vec![id.clone()], ..Chat::default() };
        self.chats.insert(id.clone(), chat);
        self.people.push(person);
        id
    }

    /// Adds a group with the robot in it.
    pub(crate) fn add_group(&mut self, title: &str, members: &[&str]) -> String {
        let id = format!("cidG{}==", self.fresh());
        let members = members.iter().map(|&member| member.to_owned()).collect();
        let chat = Chat { title: title.to_owned(), members, group: true, posts: Vec::new() };
        self.chats.insert(id.clone(), chat);
        id
    }

    /// Sends a user's message; returns its ID, or that of the last one if it takes several.
    pub(crate) fn write(&mut self, words: &Words) -> String {
        let (pictures, files): (Vec<_>, Vec<_>) =
            words.files.iter().cloned().partition(|(name, _)| is_picture(name));
        let mut last = String::new();
        // A file is a separate message here; only images are part of a text.
        for (name, bytes) in files {
            let body = file_body(self, &name, bytes);
            last = self.post(words, &body);
        }
        if !pictures.is_empty() {
            let body = self.picture_body(&words.text, pictures);
            last = self.post(words, &body);
        } else if !words.text.is_empty() || last.is_empty() {
            last = self.post(words, &self.text_body(words));
        }
        last
    }

    fn text_body(&self, words: &Words) -> Value {
        // The mention of the robot is removed; the space after it stays.
        let group = self.chats.get(&words.chat).is_some_and(|chat| chat.group);
        let content = if group { format!(" {}", words.text) } else { words.text.clone() };
        let mut body = json!({"msgtype": "text", "text": {"content": content}});
        if let Some(answered) = &words.answers {
            let ours = self.shows(answered);
            body["text"]["isReplyMsg"] = true.into();
            body["text"]["repliedMsg"] = json!({"msgId": answered, "msgType": "unknownMsgType"});
            body["originalMsgId"] = answered.as_str().into();
            if ours {
                body["originalProcessQueryKey"] = answered.as_str().into();
            }
        }
        body
    }

    fn shows(&self, id: &str) -> bool {
        self.chats.values().flat_map(|chat| &chat.posts).any(|post| post.id == id)
    }

    fn picture_body(&mut self, text: &str, pictures: Vec<(String, Bytes)>) -> Value {
        let mut codes = pictures.into_iter().map(|(name, bytes)| {
            let code = files::keep(self, "dcode", &name, bytes);
            json!({"type": "picture", "downloadCode": code, "pictureDownloadCode": format!("p{code}")})
        });
        if text.is_empty()
            && let (Some(mut one), None) = (codes.next(), codes.next())
        {
            one.as_object_mut().map(|one| one.remove("type"));
            return json!({"msgtype": "picture", "content": one});
        }
        let mut parts = vec![json!({"text": text})];
        parts.extend(codes);
        json!({"msgtype": "richText", "content": {"richText": parts}})
    }

    /// Reports a message with this body to the robot, if it receives it; returns the message's ID.
    pub(crate) fn post(&mut self, words: &Words, body: &Value) -> String {
        let id = format!("msg{:010}==", self.fresh());
        let Some(chat) = self.chats.get(&words.chat) else { return id };
        // In a group the robot only receives messages that mention it.
        if !chat.members.contains(&words.person) || chat.group && !words.to_bot {
            return id;
        }
        let data = self.message(words, &id, body);
        self.tell("CALLBACK", MESSAGES, &id, data);
        id
    }

    fn message(&mut self, words: &Words, id: &str, body: &Value) -> Value {
        let key = format!("{:032x}", self.random.u128(..));
        let until = Instant::now() + SESSION;
        self.sessions.insert(key.clone(), Session { chat: words.chat.clone(), until });
        let now = unix_ms();
        let expires = now + u64::try_from(SESSION.as_millis()).unwrap_or_default();
        let robot = self.options.client_id.clone();
        let mut data = Map::from_iter([
            ("msgId".to_owned(), id.into()),
            ("createAt".to_owned(), now.into()),
            ("chatbotUserId".to_owned(), "$:LWCP_v1:$robot==".into()),
            ("chatbotCorpId".to_owned(), "dingcorp0001".into()),
            ("robotCode".to_owned(), robot.into()),
            ("isAdmin".to_owned(), false.into()),
            ("sessionWebhook".to_owned(), format!("{}/robot/sendBySession?session={key}", self.url).into()),
            ("sessionWebhookExpiredTime".to_owned(), expires.into()),
        ]);
        if let Some(person) = self.person(&words.person) {
            data.insert("senderId".to_owned(), person.sender.clone().into());
            data.insert("senderNick".to_owned(), person.name.clone().into());
            // The platform omits both for users from outside the organization.
            if let Some(staff) = &person.staff {
                data.insert("senderStaffId".to_owned(), staff.clone().into());
                data.insert("senderCorpId".to_owned(), "dingcorp0001".into());
            }
        }
        data.extend(self.place(words));
        data.extend(body.as_object().cloned().unwrap_or_default());
        data.into()
    }

    fn place(&self, words: &Words) -> Map<String, Value> {
        let Some(chat) = self.chats.get(&words.chat) else { return Map::new() };
        let place = if chat.group {
            let robot = json!([{"dingtalkId": "$:LWCP_v1:$robot=="}]);
            json!({
                "conversationType": "2", "conversationId": words.chat, "conversationTitle": chat.title,
                "isInAtList": true, "atUsers": robot,
            })
        } else {
            let alone = self.person(&words.chat).map(|person| person.alone.clone()).unwrap_or_default();
            json!({"conversationType": "1", "conversationId": alone})
        };
        place.as_object().cloned().unwrap_or_default()
    }
}

fn file_body(world: &mut World, name: &str, bytes: Bytes) -> Value {
    let size = bytes.len();
    let code = files::keep(world, "dcode", name, bytes);
    if has_end(name, &["amr", "mp3", "ogg"]) {
        let content = json!({"downloadCode": code, "recognition": "what was said", "duration": 4000});
        return json!({"msgtype": "audio", "content": content});
    }
    if has_end(name, &["mp4"]) {
        let content = json!({"downloadCode": code, "videoType": "mp4", "duration": "5"});
        return json!({"msgtype": "video", "content": content});
    }
    let content =
        json!({"downloadCode": code, "fileName": name, "fileSize": size, "spaceId": "1", "fileId": "1"});
    json!({"msgtype": "file", "content": content})
}

fn is_picture(name: &str) -> bool {
    has_end(name, &["png", "jpg", "jpeg", "gif"])
}

fn has_end(name: &str, ends: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| ends.iter().any(|known| known.eq_ignore_ascii_case(end)))
}
