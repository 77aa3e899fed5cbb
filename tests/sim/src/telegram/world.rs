//! The platform's state, and lookups in it. No I/O and no waiting here: a call is a function of this state, and tests
//! of the rules need no server.

use super::{
    error::{Answer, Refusal},
    pace::Meter,
    types::{Access, Author, Body, Chat, ChatId, Kind, Message, MessageId, Shown, Upload, User, UserId},
    updates::Updates,
    webhook::Webhook,
    wire,
};
use crate::stage::Books;
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

/// Options of the bot and the server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The bot's token, `<id>:<secret>`.
    pub token: String,
    /// Name of the bot after the `@`.
    pub username: String,
    /// Whether the bot only receives commands, mentions and replies in groups.
    pub privacy: bool,
    /// Whether the server supports `sendMessageDraft`; older ones do not.
    pub drafts: bool,
    /// Seed for random failures.
    pub seed: u64,
    /// Pause before a refused webhook delivery is repeated; it doubles each time.
    pub webhook_retry: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            token: "7000000001:SIM-token-of-the-simulated-bot_00000".to_owned(),
            username: "pudu_bot".to_owned(),
            privacy: false,
            drafts: true,
            seed: 1,
            webhook_retry: Duration::from_secs(1),
        }
    }
}

/// The platform's state.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) me: User,
    pub(crate) users: BTreeMap<UserId, User>,
    pub(crate) chats: BTreeMap<ChatId, Chat>,
    pub(crate) files: HashMap<String, Upload>,
    /// Menus of commands by language; the empty one is the default.
    pub(crate) commands: BTreeMap<String, Value>,
    pub(crate) presses: Vec<Press>,
    pub(crate) updates: Updates,
    pub(crate) webhook: Option<Webhook>,
    pub(crate) books: Books,
    pub(crate) meter: Meter,
    pub(crate) started: Instant,
    /// The last message number of private chats and basic groups, which share a sequence.
    shared: i64,
    last_id: i64,
}

/// A pressed button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Press {
    /// ID for the bot's answer.
    pub id: String,
    /// The button's data.
    pub data: String,
    /// The bot's answer; `None` while the button shows its progress.
    pub answer: Option<String>,
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        let id = options.token.split_once(':').and_then(|(id, _)| id.parse().ok()).unwrap_or(7_000_000_001);
        let username = Some(options.username.clone());
        Self {
            me: User { id: UserId(id), name: "Pudu".to_owned(), username, language: String::new() },
            users: BTreeMap::new(),
            chats: BTreeMap::new(),
            files: HashMap::new(),
            commands: BTreeMap::new(),
            presses: Vec::new(),
            updates: Updates::new(740_000_001),
            webhook: None,
            books: Books::new(options.seed),
            meter: Meter::default(),
            started: Instant::now(),
            shared: 0,
            last_id: 1000,
            options,
        }
    }

    /// Returns a unique number.
    pub(crate) fn fresh(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn chat(&self, id: ChatId) -> Answer<&Chat> {
        self.chats.get(&id).ok_or_else(|| Refusal::bad("chat not found"))
    }

    pub(crate) fn chat_mut(&mut self, id: ChatId) -> Answer<&mut Chat> {
        self.chats.get_mut(&id).ok_or_else(|| Refusal::bad("chat not found"))
    }

    /// Returns the chat, if the bot may write to it.
    pub(crate) fn open_chat(&self, id: ChatId) -> Answer<&Chat> {
        let chat = self.chat(id)?;
        match (chat.access, chat.is_supergroup()) {
            (Access::Open, _) => Ok(chat),
            (Access::Blocked, _) => Err(Refusal::forbidden("bot was blocked by the user")),
            (Access::Kicked, true) => Err(Refusal::forbidden("bot was kicked from the supergroup chat")),
            (Access::Kicked, false) => Err(Refusal::forbidden("bot was kicked from the group chat")),
            (Access::Migrated(to), _) => Err(Refusal::migrated(to)),
        }
    }

    fn next_message_id(&mut self, chat: ChatId) -> Answer<MessageId> {
        let row = match self.chats.get_mut(&chat) {
            Some(chat) if chat.is_supergroup() => &mut chat.last,
            Some(_) => &mut self.shared,
            None => return Err(Refusal::bad("chat not found")),
        };
        *row += 1;
        Ok(MessageId(*row))
    }

    /// Adds a message to a chat.
    pub(crate) fn post(&mut self, chat: ChatId, message: NewMessage) -> Answer<MessageId> {
        let id = self.next_message_id(chat)?;
        let shown = vec![Shown { at: Instant::now(), text: message.body.text.clone() }];
        let chat = self.chat_mut(chat)?;
        let kept = Message {
            id,
            from: message.from,
            date: unix_now(),
            body: message.body,
            reply_to: message.reply_to,
            thread: message.thread,
            edited: None,
            deleted: false,
            album: message.album,
            forwarded_from: message.forwarded_from,
            reactions: Vec::new(),
            shown,
            service: message.service,
        };
        chat.messages.insert(id, kept);
        if message.from == Author::Bot {
            chat.typing = None;
            chat.draft = None;
        }
        Ok(id)
    }

    /// Returns the message as the bot receives it.
    pub(crate) fn message_json(&self, chat: ChatId, id: MessageId) -> Answer {
        let chat = self.chat(chat)?;
        let message = chat.messages.get(&id).ok_or_else(|| Refusal::bad("message not found"))?;
        Ok(wire::message(self, chat, message))
    }

    /// Stores a file under a new id.
    pub(crate) fn store(&mut self, file: Upload) -> String {
        let kind = if file.photo { "AgACAgIAAxk" } else { "BQACAgIAAxk" };
        let id = format!("{kind}BAAI{:08}", self.fresh());
        self.files.insert(id.clone(), file);
        id
    }

    /// Returns the time of the next expiry of something visible.
    pub(crate) fn next_fading(&self, now: Instant) -> Option<Instant> {
        let typing = self.chats.values().filter_map(|chat| chat.typing.as_ref()).map(|typing| typing.until);
        let drafts = self.chats.values().filter_map(|chat| chat.draft.as_ref()).map(|draft| draft.until);
        typing.chain(drafts).filter(|until| *until > now).min()
    }

    pub(crate) fn add_chat(&mut self, kind: Kind, title: &str, members: &[UserId]) -> ChatId {
        let number = self.fresh();
        let id = match kind {
            Kind::Private => ChatId(members.first().map_or(number, |user| user.0)),
            Kind::Group => ChatId(-4_000_000_000 - number),
            Kind::Supergroup | Kind::Forum => ChatId(-1_002_000_000_000 - number),
        };
        let mut chat = Chat::new(id, kind, title);
        chat.members.extend(members);
        self.chats.insert(id, chat);
        id
    }
}

/// A message that is not in a chat yet.
#[derive(Clone, Debug)]
pub(crate) struct NewMessage {
    pub(crate) from: Author,
    pub(crate) body: Body,
    pub(crate) reply_to: Option<MessageId>,
    pub(crate) thread: Option<MessageId>,
    pub(crate) album: Option<String>,
    pub(crate) forwarded_from: Option<String>,
    pub(crate) service: Option<(&'static str, Value)>,
}

impl NewMessage {
    pub(crate) fn new(from: Author, body: Body) -> Self {
        Self { from, body, reply_to: None, thread: None, album: None, forwarded_from: None, service: None }
    }
}

/// Returns seconds since 1970.
pub(crate) fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
