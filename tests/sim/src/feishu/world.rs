//! The platform's state, and lookups in it. No I/O and no waiting here.

use super::{
    content::Face,
    deliver::Chunks,
    events::Events,
    pace::Meter,
    refusal::{Answer, Refusal},
    socket::Connection,
    token::Tokens,
    types::{Card, Chat, Kind, Message, Press, Stored},
};
use crate::{
    fault::Fault,
    stage::{self, Books},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

/// Options of the app and the server.
#[derive(Clone, Debug)]
pub struct Options {
    /// ID of the app: `cli_` and 16 hexadecimal digits.
    pub app_id: String,
    /// The app's secret.
    pub app_secret: String,
    /// Key to encrypt and sign webhook events.
    pub encrypt_key: String,
    /// Verification token of events.
    pub verification_token: String,
    /// The bot's name.
    pub name: String,
    /// Seed for random events.
    pub seed: u64,
    /// Pauses before an unacknowledged event is repeated. The platform uses 15 s, 5 min, 1 h and 6 h, which is too long
    /// for tests.
    pub redelivery: Vec<Duration>,
    /// Timeout of an acknowledgement.
    pub ack: Duration,
    /// Lifetime of a token.
    pub token_life: Duration,
    /// Whether the bot receives all messages in groups, or only mentions.
    pub hears_all: bool,
    /// Reconnect settings of the endpoint: seconds of jitter, and seconds between attempts.
    pub reconnect: (i64, i64),
    /// Interval of pings, in seconds.
    pub ping_interval: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            app_id: "cli_a1b2c3d4e5f60718".to_owned(),
            app_secret: "SIMsecretOfTheSimulatedApp000000".to_owned(),
            encrypt_key: "sim-encrypt-key".to_owned(),
            verification_token: "sim-verification-token".to_owned(),
            name: "Pudu".to_owned(),
            seed: 1,
            redelivery: [1, 2, 5, 10].map(Duration::from_secs).to_vec(),
            ack: Duration::from_secs(3),
            token_life: Duration::from_secs(7200),
            hears_all: true,
            reconnect: (0, 1),
            ping_interval: 120,
        }
    }
}

/// The platform's state.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) url: String,
    pub(crate) bot: String,
    pub(crate) people: BTreeMap<String, String>,
    pub(crate) chats: BTreeMap<String, Chat>,
    pub(crate) messages: HashMap<String, Message>,
    pub(crate) cards: HashMap<String, Card>,
    pub(crate) files: HashMap<String, Stored>,
    /// Messages by idempotency key, with their times.
    pub(crate) sent: HashMap<String, (String, Instant)>,
    pub(crate) tokens: Tokens,
    pub(crate) missing: BTreeSet<String>,
    pub(crate) meter: Meter,
    pub(crate) events: Events,
    pub(crate) presses: Vec<Press>,
    pub(crate) tickets: BTreeSet<String>,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(crate) chunks: Chunks,
    pub(crate) deaf: bool,
    pub(crate) webhook: Option<String>,
    pub(crate) violations: Vec<String>,
    pub(crate) pings: u64,
    /// Start of the next page, by its token.
    pub(crate) pages: HashMap<String, usize>,
    /// A word that is refused.
    pub(crate) taboo: Option<String>,
    pub(crate) books: Books,
    pub(crate) random: fastrand::Rng,
    last: u64,
}

impl stage::World for World {
    fn books(&mut self) -> &mut Books {
        &mut self.books
    }

    fn refuse(fault: &Fault) -> stage::Answer {
        Refusal::planned(fault).answer()
    }
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            url: String::new(),
            bot: "ou_b07000000000000000000000000b07".to_owned(),
            people: BTreeMap::new(),
            chats: BTreeMap::new(),
            messages: HashMap::new(),
            cards: HashMap::new(),
            files: HashMap::new(),
            sent: HashMap::new(),
            tokens: Tokens::default(),
            missing: BTreeSet::new(),
            meter: Meter::default(),
            events: Events::default(),
            presses: Vec::new(),
            tickets: BTreeSet::new(),
            connections: BTreeMap::new(),
            chunks: Chunks::default(),
            deaf: false,
            webhook: None,
            violations: Vec::new(),
            pings: 0,
            pages: HashMap::new(),
            taboo: None,
            books: Books::new(options.seed),
            random: fastrand::Rng::with_seed(options.seed),
            last: 1000,
            options,
        }
    }

    /// Refuses texts with the forbidden word.
    pub(crate) fn reads(&self, text: &str) -> Answer<()> {
        match &self.taboo {
            Some(word) if text.contains(word) => {
                Err(Refusal::new(230_028, "The messages do NOT pass the audit."))
            }
            _ => Ok(()),
        }
    }

    /// Returns a unique ID.
    pub(crate) fn fresh(&mut self, prefix: &str) -> String {
        format!("{prefix}{:032x}", self.number())
    }

    /// Returns a unique number.
    pub(crate) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn add_group(&mut self, kind: Kind, title: &str, members: &[&str]) -> String {
        let id = self.fresh("oc_");
        self.add_chat(&id, kind, title, members);
        id
    }

    pub(crate) fn add_chat(&mut self, id: &str, kind: Kind, title: &str, members: &[&str]) {
        let chat = Chat {
            kind,
            title: title.to_owned(),
            members: members.iter().map(|one| (*one).to_owned()).collect(),
            messages: Vec::new(),
            closed: None,
        };
        self.chats.insert(id.to_owned(), chat);
    }

    pub(crate) fn close_chat(&mut self, chat: &str, code: i64) {
        if let Some(chat) = self.chats.get_mut(chat) {
            chat.closed = (code != 0).then_some(code);
        }
    }

    /// Returns the chat, if the bot may write to it.
    pub(crate) fn open_chat(&self, id: &str) -> Answer<&Chat> {
        let out = || Refusal::new(230_002, "Bot/User can NOT be out of the chat.");
        let chat = self.chats.get(id).ok_or_else(out)?;
        match chat.closed {
            None => Ok(chat),
            Some(230_002) => Err(out()),
            Some(code) => Err(Refusal::new(code, "the bot may not write here")),
        }
    }

    /// Returns the message, if it still exists.
    pub(crate) fn message(&self, id: &str) -> Answer<&Message> {
        let message = self.messages.get(id);
        let message = message.ok_or_else(|| Refusal::params("Invalid ids: message_id"))?;
        if message.deleted {
            return Err(Refusal::new(230_011, "The message was withdrawn."));
        }
        Ok(message)
    }

    pub(crate) fn put(&mut self, message: Message) {
        if let Some(chat) = self.chats.get_mut(&message.chat) {
            chat.messages.push(message.id.clone());
        }
        let id = message.id.clone();
        self.messages.insert(id.clone(), message);
        self.note(&id);
    }

    /// Records a message's current content, if it has changed.
    pub(crate) fn note(&mut self, id: &str) {
        let Some(message) = self.messages.get_mut(id) else { return };
        let card = message.card.as_ref().and_then(|card| self.cards.get(card));
        message.face = match card {
            None => super::content::face(&message.kind, &message.content),
            Some(card) => super::content::card(&card.json),
        };
        if message.history.last() != Some(&message.face.text) {
            message.history.push(message.face.text.clone());
        }
    }

    /// Returns the visible content of a message.
    pub(crate) fn face(&self, id: &str) -> Face {
        let Some(message) = self.messages.get(id) else { return Face::default() };
        let card = message.card.as_ref().and_then(|card| self.cards.get(card));
        Face { growing: card.is_some_and(|card| card.grows(Instant::now())), ..message.face.clone() }
    }

    pub(crate) fn preview(&self, id: &str) -> String {
        let Some(message) = self.messages.get(id) else { return String::new() };
        let card = message.card.as_ref().and_then(|card| self.cards.get(card));
        let summary = |card: &Card| {
            if card.grows(Instant::now()) {
                return Some("[Generating...]".to_owned());
            }
            card.json.pointer("/config/summary/content").and_then(|text| text.as_str()).map(str::to_owned)
        };
        card.and_then(summary).unwrap_or_else(|| self.face(id).text)
    }
}

/// Returns milliseconds since 1970.
pub(crate) fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
