//! The server ("guild"), its channels and threads, users, messages, and settings of the simulator.

use super::{
    error::{Answer, Refusal},
    interactions::Interaction,
    modals::Modal,
    pace::Meter,
    sessions::Sessions,
};
use crate::stage::Books;
use bytes::Bytes;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

/// Options of a simulated Discord.
#[derive(Clone, Debug)]
pub struct Options {
    /// The bot's token.
    pub token: String,
    /// Whether the message content intent is switched on in the developer portal.
    pub content_intent: bool,
    /// Permissions of the bot's role on the server, unless a channel overrides them.
    pub permissions: u64,
    /// Interval of the client's heartbeats.
    pub heartbeat: Duration,
    /// Time in which a session can be resumed after a disconnect.
    pub resumable: Duration,
    /// Time in which a nonce identifies a message.
    pub nonces: Duration,
    /// Timeout of the first response to an interaction; 3 s on the real platform.
    pub answer_within: Duration,
    /// Lifetime of an interaction's token; 15 minutes on the real platform.
    pub token_lives: Duration,
    /// Remaining session starts of the day.
    pub starts: u64,
    /// Seed for random failures.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            token: "MTAwMDAwMDAwMDAwMDAwMDAx.SIMbot.token-of-the-simulated-bot-0000000000".to_owned(),
            content_intent: true,
            permissions: 309_237_746_752,
            heartbeat: Duration::from_millis(41_250),
            resumable: Duration::from_secs(90),
            nonces: Duration::from_secs(300),
            answer_within: Duration::from_secs(3),
            token_lives: Duration::from_secs(15 * 60),
            starts: 1000,
            seed: 1,
        }
    }
}

/// ID of the application and of the bot's user, which are equal for all current applications.
pub(crate) const BOT: &str = "1000000000000000001";
/// The role that the server made for the bot.
pub(crate) const BOT_ROLE: &str = "1000000000000000002";
pub(crate) const GUILD: &str = "1000000000000000003";
pub(crate) const BOT_NAME: &str = "pudu";

/// Discord counts milliseconds from the beginning of 2015.
const EPOCH: u64 = 1_420_070_400_000;

/// The complete state.
pub(crate) struct World {
    pub(crate) books: Books,
    pub(crate) options: Options,
    /// URL of the server, without a trailing slash.
    pub(crate) url: String,
    pub(crate) people: BTreeMap<String, String>,
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) messages: BTreeMap<u64, Message>,
    pub(crate) sessions: Sessions,
    pub(crate) modals: Vec<Modal>,
    pub(crate) interactions: HashMap<String, Interaction>,
    pub(crate) commands: Vec<Value>,
    pub(crate) meter: Meter,
    /// Permissions that the bot lacks, by name.
    pub(crate) forbidden: BTreeSet<String>,
    /// Whether the token was reset and is invalid.
    pub(crate) revoked: bool,
    /// Typing indicators: the channel and the time.
    pub(crate) typing: Vec<(String, Instant)>,
    /// Whether the token was sent to the file server.
    pub(crate) leaked: bool,
    pub(crate) uploads: BTreeMap<String, Upload>,
    /// Raised to expire the URLs of earlier files.
    pub(crate) link_age: u64,
    last_id: u64,
}

/// A text channel, a thread, or a direct message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: ChannelKind,
    pub(crate) members: BTreeSet<String>,
    pub(crate) archived: bool,
}

/// Kind of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChannelKind {
    #[default]
    Text,
    /// A direct message with this user.
    Direct(String),
    /// A thread of a text channel, started by the owner.
    Thread { parent: String, owner: String },
}

/// A message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) channel: String,
    /// ID of the author, possibly the bot's.
    pub(crate) author: String,
    pub(crate) content: String,
    pub(crate) components: Vec<Value>,
    pub(crate) embeds: Vec<Value>,
    pub(crate) files: Vec<String>,
    pub(crate) answers: Option<String>,
    pub(crate) flags: u64,
    pub(crate) nonce: Option<Value>,
    pub(crate) sent: Option<Instant>,
    pub(crate) edited: Option<u64>,
    pub(crate) deleted: bool,
    pub(crate) pings: bool,
    pub(crate) reactions: Vec<String>,
    /// The interaction that it responds to.
    pub(crate) interaction: Option<String>,
    pub(crate) history: Vec<String>,
}

/// An uploaded file.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    pub(crate) id: String,
    pub(crate) channel: String,
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

/// The interaction waits for its response; users see "is thinking…".
pub(crate) const LOADING: u64 = 1 << 7;
pub(crate) const SUPPRESS_EMBEDS: u64 = 1 << 2;
pub(crate) const EPHEMERAL: u64 = 1 << 6;

impl World {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            books: Books::new(options.seed),
            url: String::new(),
            people: BTreeMap::new(),
            channels: BTreeMap::new(),
            messages: BTreeMap::new(),
            sessions: Sessions::default(),
            modals: Vec::new(),
            interactions: HashMap::new(),
            commands: Vec::new(),
            meter: Meter::default(),
            forbidden: BTreeSet::new(),
            revoked: false,
            typing: Vec::new(),
            leaked: false,
            uploads: BTreeMap::new(),
            link_age: 0,
            last_id: 0,
            options,
        }
    }

    /// Returns a unique ID that contains the time and increases.
    pub(crate) fn snowflake(&mut self) -> u64 {
        let now = unix_ms().saturating_sub(EPOCH) << 22;
        self.last_id = now.max(self.last_id + 1);
        self.last_id
    }

    pub(crate) fn channel(&self, id: &str) -> Answer<&Channel> {
        if self.forbidden.contains("VIEW_CHANNEL") {
            return Err(Refusal::new(403, 50001, "Missing Access"));
        }
        self.channels.get(id).ok_or_else(|| Refusal::new(404, 10003, "Unknown Channel"))
    }

    pub(crate) fn message(&self, channel: &str, id: &str) -> Answer<&Message> {
        self.channel(channel)?;
        let found = id.parse().ok().and_then(|id: u64| self.messages.get(&id));
        found
            .filter(|message| message.channel == channel && !message.deleted)
            .ok_or_else(|| Refusal::new(404, 10008, "Unknown Message"))
    }

    pub(crate) fn message_mut(&mut self, channel: &str, id: &str) -> Answer<&mut Message> {
        self.message(channel, id)?;
        let found = id.parse().ok().and_then(|id: u64| self.messages.get_mut(&id));
        found.ok_or_else(|| Refusal::new(404, 10008, "Unknown Message"))
    }

    /// Fails if the bot lacks a permission.
    pub(crate) fn need(&self, permission: &str) -> Answer<()> {
        if self.forbidden.contains(permission) {
            return Err(Refusal::new(403, 50013, "Missing Permissions"));
        }
        Ok(())
    }

    /// Returns the existing messages of a channel, oldest first.
    pub(crate) fn in_channel<'a>(&'a self, channel: &'a str) -> impl Iterator<Item = &'a Message> {
        self.messages.values().filter(move |message| message.channel == channel && !message.deleted)
    }

    /// Returns a chat with its threads.
    pub(crate) fn with_threads(&self, chat: &str) -> BTreeSet<String> {
        let of = |channel: &&Channel| {
            channel.id == chat
                || matches!(&channel.kind, ChannelKind::Thread { parent, .. } if parent == chat)
        };
        self.channels.values().filter(of).map(|channel| channel.id.clone()).collect()
    }
}

impl Channel {
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.kind, ChannelKind::Direct(_))
    }

    pub(crate) fn number(&self) -> u64 {
        match self.kind {
            ChannelKind::Text => 0,
            ChannelKind::Direct(_) => 1,
            ChannelKind::Thread { .. } => 11,
        }
    }
}

impl Message {
    pub(crate) fn is_own(&self) -> bool {
        self.author == BOT
    }
}

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the creation time of an ID, in milliseconds since 1970.
pub(crate) fn made(id: u64) -> u64 {
    (id >> 22) + EPOCH
}
