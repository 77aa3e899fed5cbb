//! User actions: writing, editing, pressing, blocking. Each becomes an update if the bot may see it.

use super::{
    edit::replace,
    entity::{self, Entity},
    types::{Access, Author, Body, Chat, ChatId, File, Kind, MessageId, UpdateId, Upload, User, UserId},
    wire,
    world::{NewMessage, Press, World},
};
use tokio::time::Instant;

/// A user's post.
#[derive(Clone, Debug, Default)]
pub struct Post {
    text: String,
    reply_to: Option<MessageId>,
    topic: Option<MessageId>,
    files: Vec<Upload>,
    forwarded_from: Option<String>,
}

impl Post {
    /// A text, or the caption of the following files.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// As a reply to a message.
    #[must_use]
    pub fn reply_to(mut self, message: MessageId) -> Self {
        self.reply_to = Some(message);
        self
    }

    /// As a forwarded message of a user who hides their account.
    #[must_use]
    pub fn forwarded_from(mut self, name: &str) -> Self {
        self.forwarded_from = Some(name.to_owned());
        self
    }

    /// In a topic of a forum.
    #[must_use]
    pub fn topic(mut self, topic: MessageId) -> Self {
        self.topic = Some(topic);
        self
    }

    /// With a file. Several files are an album: one message each, with the caption on the first.
    #[must_use]
    pub fn file(mut self, file: Upload) -> Self {
        self.files.push(file);
        self
    }
}

/// Reason why an action is impossible: an error of the test.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// The chat does not exist, or the bot's access has moved.
    #[error("there is no chat {0}")]
    Chat(ChatId),
    /// The message does not exist, or is deleted.
    #[error("there is no message {0}")]
    Message(MessageId),
    /// The user is not in the chat, or unknown.
    #[error("{0} is not in the chat")]
    Person(UserId),
    /// The message has no button that sends this.
    #[error("no button sends {0:?}")]
    Button(String),
    /// The action is not possible in this kind of chat.
    #[error("not in this kind of chat")]
    Kind,
}

type Done<T> = Result<T, Impossible>;

impl World {
    pub(crate) fn add_person(&mut self, name: &str, username: Option<&str>) -> UserId {
        let id = UserId(500_000_000 + self.fresh());
        let (username, language) = (username.map(str::to_owned), "en".to_owned());
        self.users.insert(id, User { id, name: name.to_owned(), username, language });
        self.add_chat(Kind::Private, name, &[id]);
        id
    }

    pub(crate) fn open_topic(&mut self, chat: ChatId, name: &str) -> Done<MessageId> {
        let of = self.chat(chat).map_err(|_| Impossible::Chat(chat))?;
        let from = of.members.first().copied().ok_or(Impossible::Kind)?;
        if of.kind != Kind::Forum {
            return Err(Impossible::Kind);
        }
        let mut new = NewMessage::new(Author::User(from), Body::default());
        new.service = Some(("forum_topic_created", wire::topic_created(name)));
        let id = self.post(chat, new).map_err(|_| Impossible::Chat(chat))?;
        if let Some(of) = self.chats.get_mut(&chat) {
            of.topics.insert(id, name.to_owned());
            if let Some(message) = of.message_mut(id) {
                message.thread = Some(id);
            }
        }
        self.tell(chat, id, "message");
        Ok(id)
    }

    pub(crate) fn say(&mut self, chat: ChatId, user: UserId, post: &Post) -> Done<Vec<MessageId>> {
        let of = self.chat(chat).map_err(|_| Impossible::Chat(chat))?;
        if !of.members.contains(&user) {
            return Err(Impossible::Person(user));
        }
        let mut template = NewMessage::new(Author::User(user), Body::default());
        template.reply_to = post.reply_to;
        template.thread = thread(of, post)?;
        template.forwarded_from.clone_from(&post.forwarded_from);
        let bodies = self.bodies(post);
        if bodies.len() > 1 {
            template.album = Some(format!("13{:015}", self.fresh()));
        }
        let mut ids = Vec::new();
        for body in bodies {
            let new = NewMessage { body, ..template.clone() };
            let id = self.post(chat, new).map_err(|_| Impossible::Chat(chat))?;
            ids.push(id);
            self.tell(chat, id, "message");
        }
        Ok(ids)
    }

    fn bodies(&mut self, post: &Post) -> Vec<Body> {
        let entities = entity::detect(&post.text, Vec::new());
        let mut text = Some((post.text.clone(), entities));
        let mut body = |file| {
            let (text, entities) = text.take().unwrap_or_default();
            Body { text, entities, file, ..Body::default() }
        };
        if post.files.is_empty() {
            return vec![body(None)];
        }
        post.files.iter().map(|file| body(Some(self.keep(file)))).collect()
    }

    fn keep(&mut self, file: &Upload) -> File {
        let id = self.store(file.clone());
        File {
            id,
            name: file.name.clone(),
            mime: file.mime.clone(),
            size: file.bytes.len(),
            photo: file.photo,
        }
    }

    pub(crate) fn person_edits(&mut self, chat: ChatId, message: MessageId, text: &str) -> Done<()> {
        let of = self.chat_mut(chat).map_err(|_| Impossible::Chat(chat))?;
        let edited = of.message_mut(message).filter(|message| message.from != Author::Bot);
        let edited = edited.ok_or(Impossible::Message(message))?;
        let entities: Vec<Entity> = entity::detect(text, Vec::new());
        let body = Body { text: text.to_owned(), entities, ..edited.body.clone() };
        replace(edited, body);
        self.tell(chat, message, "edited_message");
        Ok(())
    }

    /// Deletes a user's message; the platform sends no event to the bot.
    pub(crate) fn person_deletes(&mut self, chat: ChatId, message: MessageId) -> Done<()> {
        let of = self.chat_mut(chat).map_err(|_| Impossible::Chat(chat))?;
        of.message_mut(message).ok_or(Impossible::Message(message))?.deleted = true;
        Ok(())
    }

    pub(crate) fn press(
        &mut self,
        chat: ChatId,
        user: UserId,
        message: MessageId,
        button: &str,
    ) -> Done<String> {
        let id = format!("4382{:015}", self.fresh());
        let of = self.chat(chat).map_err(|_| Impossible::Chat(chat))?;
        let pressed = of.message(message).ok_or(Impossible::Message(message))?;
        let mut all = pressed.body.buttons.iter().flatten();
        let data = all.find(|one| one.callback_data.as_deref() == Some(button) || one.text == button);
        let data = data.and_then(|one| one.callback_data.clone());
        let data = data.ok_or_else(|| Impossible::Button(button.to_owned()))?;
        let person = self.users.get(&user).ok_or(Impossible::Person(user))?;
        let query = wire::callback(self, of, person, &id, message, &data);
        self.presses.push(Press { id: id.clone(), data, answer: None });
        self.updates.push(chat, "callback_query", &query, Instant::now());
        Ok(id)
    }

    pub(crate) fn set_access(&mut self, chat: ChatId, access: Access) -> Done<()> {
        self.chat_mut(chat).map_err(|_| Impossible::Chat(chat))?.access = access;
        Ok(())
    }

    /// Converts a group to a supergroup: a new chat, announced in both.
    pub(crate) fn migrate(&mut self, group: ChatId) -> Done<ChatId> {
        let of = self.chat(group).map_err(|_| Impossible::Chat(group))?;
        if of.kind != Kind::Group {
            return Err(Impossible::Kind);
        }
        let (title, members): (String, Vec<_>) = (of.title.clone(), of.members.iter().copied().collect());
        let new = self.add_chat(Kind::Supergroup, &title, &members);
        self.announce(group, ("migrate_to_chat_id", new.0.into()))?;
        self.announce(new, ("migrate_from_chat_id", group.0.into()))?;
        self.set_access(group, Access::Migrated(new))?;
        Ok(new)
    }

    fn announce(&mut self, chat: ChatId, what: (&'static str, serde_json::Value)) -> Done<()> {
        let of = self.chat(chat).map_err(|_| Impossible::Chat(chat))?;
        let from = of.members.first().copied().ok_or(Impossible::Kind)?;
        let mut new = NewMessage::new(Author::User(from), Body::default());
        new.service = Some(what);
        let id = self.post(chat, new).map_err(|_| Impossible::Chat(chat))?;
        self.tell(chat, id, "message");
        Ok(())
    }

    fn tell(&mut self, chat: ChatId, id: MessageId, kind: &str) -> Option<UpdateId> {
        let of = self.chats.get(&chat)?;
        let message = of.messages.get(&id)?;
        let visible = of.access == Access::Open
            && (!self.options.privacy || of.kind == Kind::Private || self.concerns_bot(of, id));
        if !visible {
            return None;
        }
        let json = wire::message(self, of, message);
        self.updates.push(chat, kind, &json, Instant::now())
    }

    /// Returns whether a bot in privacy mode receives a message of a group: service messages, replies to it, mentions
    /// of it, and commands unless they name another bot.
    fn concerns_bot(&self, of: &Chat, id: MessageId) -> bool {
        let Some(message) = of.message(id) else { return false };
        let replied = message.reply_to.and_then(|id| of.message(id));
        let own_name = format!("@{}", self.options.username).to_ascii_lowercase();
        let addressed = message.body.entities.iter().any(|entity| {
            let written: Vec<u16> =
                message.body.text.encode_utf16().skip(entity.offset).take(entity.length).collect();
            let written = String::from_utf16_lossy(&written).to_ascii_lowercase();
            match entity.kind.as_str() {
                "mention" => written == own_name,
                "bot_command" => !written.contains('@') || written.ends_with(&own_name),
                _ => false,
            }
        });
        message.service.is_some() || addressed || replied.is_some_and(|replied| replied.from == Author::Bot)
    }
}

fn thread(of: &Chat, post: &Post) -> Done<Option<MessageId>> {
    if let Some(topic) = post.topic {
        return if of.topics.contains_key(&topic) {
            Ok(Some(topic))
        } else {
            Err(Impossible::Message(topic))
        };
    }
    let Some(replied) = post.reply_to else { return Ok(None) };
    of.message(replied).ok_or(Impossible::Message(replied))?;
    Ok(of.thread_of(replied))
}
