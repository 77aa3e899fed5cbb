//! The workspace: users, channels, messages and files, and settings of the server.

use super::{
    envelopes::Envelopes,
    error::Answer,
    error::Refusal,
    pace::Meter,
    stream::Stream,
    views::{Trigger, View},
};
use crate::stage::Books;
use bytes::Bytes;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

/// Options of a simulated Slack.
#[derive(Clone, Debug)]
pub struct Options {
    /// The bot's token.
    pub bot_token: String,
    /// The app's token, for Socket Mode.
    pub app_token: String,
    /// Secret to sign posts with.
    pub signing_secret: String,
    /// Timeout of an acknowledgement before an event is repeated; 3 s on the real platform.
    pub ack_within: Duration,
    /// Delay before a refused post is repeated the second and third time.
    pub post_again: Duration,
    /// Idle time after which the platform closes a stream.
    pub stream_idle: Duration,
    /// Interval of the server's pings.
    pub ping: Duration,
    /// Whether the bot receives all messages of its channels, not only mentions.
    pub all_messages: bool,
    /// Whether the bot receives its own messages, as on the real platform.
    pub own_messages: bool,
    /// Whether events are lost without a connection, so that they are only in the history.
    pub lost_while_away: bool,
    /// Delay between `files.completeUploadExternal` and the file's appearance in its channel.
    pub share_after: Duration,
    /// Whether `chat.startStream` and related methods exist.
    pub streams: bool,
    /// Seed for random failures.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bot_token: "xoxb-1000000000001-1000000000002-SimulatedBotTokenABCDEF".to_owned(),
            app_token: "xapp-1-A0PUDU0001-1000000000003-0123456789abcdef0123456789abcdef".to_owned(),
            signing_secret: "0123456789abcdef0123456789abcdef".to_owned(),
            ack_within: Duration::from_secs(3),
            post_again: Duration::from_millis(300),
            stream_idle: Duration::from_secs(300),
            ping: Duration::from_secs(10),
            all_messages: true,
            own_messages: true,
            lost_while_away: false,
            share_after: Duration::ZERO,
            streams: true,
            seed: 1,
        }
    }
}

pub(crate) const TEAM: &str = "T0PUDU0001";
pub(crate) const APP: &str = "A0PUDU0001";
pub(crate) const BOT_USER: &str = "U0PUDUBOT1";
pub(crate) const BOT: &str = "B0PUDUBOT1";

/// Scopes that the bot has by default.
pub(crate) const SCOPES: [&str; 16] = [
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "reactions:write",
    "users:read",
];

/// The complete state.
pub(crate) struct World {
    pub(crate) books: Books,
    pub(crate) options: Options,
    /// URL of the server, without a trailing slash, used in its responses.
    pub(crate) url: String,
    pub(crate) people: BTreeMap<String, String>,
    /// Languages of users other than `en-US`.
    pub(crate) locales: BTreeMap<String, String>,
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) files: HashMap<String, Stored>,
    /// Accepted files that have not appeared: time and channel of each.
    pub(crate) unshared: Vec<(Instant, String, Message)>,
    pub(crate) scopes: BTreeSet<String>,
    pub(crate) statuses: Vec<Status>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) views: Vec<View>,
    pub(crate) envelopes: Envelopes,
    pub(crate) meter: Meter,
    /// URL for events, if set.
    pub(crate) events_url: Option<String>,
    /// If the tokens are invalid: the error of every call.
    pub(crate) revoked: Option<String>,
    count: u64,
    last_ts: (u64, u32),
}

/// A conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    pub(crate) id: String,
    pub(crate) title: String,
    /// The user of a direct message.
    pub(crate) with: Option<String>,
    pub(crate) members: BTreeSet<String>,
    pub(crate) bot_in: bool,
    pub(crate) messages: Vec<Message>,
}

/// Author of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Author {
    #[default]
    Bot,
    User(String),
}

/// A message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) ts: String,
    pub(crate) thread: Option<String>,
    pub(crate) from: Author,
    pub(crate) text: String,
    /// Whether the text is standard Markdown instead of mrkdwn.
    pub(crate) markdown: bool,
    pub(crate) blocks: Vec<Value>,
    pub(crate) files: Vec<String>,
    pub(crate) metadata: Option<Value>,
    pub(crate) edited: bool,
    pub(crate) deleted: bool,
    pub(crate) names_linked: bool,
    pub(crate) unfurled: bool,
    pub(crate) stream: Option<Stream>,
    pub(crate) reactions: Vec<String>,
    pub(crate) history: Vec<String>,
}

/// A file, uploaded or announced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
    /// Announced size of a file that has not arrived.
    pub(crate) announced: Option<usize>,
    pub(crate) shared: bool,
}

/// The bot's status in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The channel.
    pub channel: String,
    /// The thread.
    pub thread: String,
    /// The text; empty once it is cleared.
    pub text: String,
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            books: Books::new(options.seed),
            url: String::new(),
            people: BTreeMap::new(),
            locales: BTreeMap::new(),
            channels: BTreeMap::new(),
            files: HashMap::new(),
            unshared: Vec::new(),
            scopes: SCOPES.map(str::to_owned).into(),
            statuses: Vec::new(),
            triggers: Vec::new(),
            views: Vec::new(),
            envelopes: Envelopes::default(),
            meter: Meter::default(),
            events_url: None,
            revoked: None,
            count: 0,
            last_ts: (0, 0),
            options,
        }
    }

    pub(crate) fn fresh(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Returns an ID in Slack's format.
    pub(crate) fn id(&mut self, kind: char) -> String {
        format!("{kind}0SIM{:06}", self.fresh())
    }

    /// Returns the time as a message's ID: unique and increasing.
    pub(crate) fn ts(&mut self) -> String {
        let now = unix_now();
        self.last_ts = if now > self.last_ts.0 { (now, 100) } else { (self.last_ts.0, self.last_ts.1 + 100) };
        format!("{}.{:06}", self.last_ts.0, self.last_ts.1)
    }

    pub(crate) fn channel(&self, id: &str) -> Answer<&Channel> {
        self.channels.get(id).ok_or_else(|| Refusal::new("channel_not_found"))
    }

    /// Returns a channel that the bot may write to.
    pub(crate) fn open_channel(&mut self, id: &str) -> Answer<&mut Channel> {
        let channel = self.channels.get_mut(id).ok_or_else(|| Refusal::new("channel_not_found"))?;
        if channel.bot_in { Ok(channel) } else { Err(Refusal::new("not_in_channel")) }
    }

    pub(crate) fn need(&self, scope: &str) -> Answer<()> {
        if self.scopes.contains(scope) { Ok(()) } else { Err(Refusal::scope(scope, &self.scopes)) }
    }
}

impl Channel {
    pub(crate) fn message(&self, ts: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.ts == ts && !message.deleted)
    }

    pub(crate) fn message_mut(&mut self, ts: &str) -> Option<&mut Message> {
        self.messages.iter_mut().find(|message| message.ts == ts && !message.deleted)
    }

    /// Returns the root of the thread that a message belongs to or starts.
    pub(crate) fn root(&self, ts: &str) -> Option<String> {
        self.message(ts).map(|message| message.thread.clone().unwrap_or_else(|| ts.to_owned()))
    }

    pub(crate) fn kind(&self) -> &'static str {
        if self.with.is_some() { "im" } else { "channel" }
    }
}

pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
