//! The workspace: people, channels, messages and files, and what is set for the server.

use super::{envelopes::Envelopes, error::Answer, error::Refusal, pace::Meter, stream::Stream};
use crate::stage::Books;
use bytes::Bytes;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

/// How a simulated Slack behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The bot's token.
    pub bot_token: String,
    /// The app's token, for Socket Mode.
    pub app_token: String,
    /// What posts are signed with.
    pub signing_secret: String,
    /// How long an event waits for its acknowledgement before it is sent again; 3 s on the real one.
    pub ack_within: Duration,
    /// How long a refused post waits before it is sent again, for the second and third try.
    pub post_again: Duration,
    /// After how long without a change a stream is closed by the platform.
    pub stream_idle: Duration,
    /// How often the server pings.
    pub ping: Duration,
    /// Whether the bot hears all messages of its channels, and not only mentions.
    pub all_messages: bool,
    /// Whether the bot is told of its own messages, as the real one does.
    pub own_messages: bool,
    /// Whether events are lost while nobody is connected, so that only the history tells of them.
    pub lost_while_away: bool,
    /// How long after `files.completeUploadExternal` a file appears in its channel.
    pub share_after: Duration,
    /// Whether there are `chat.startStream` and its kin.
    pub streams: bool,
    /// For the failures that come by chance.
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

/// The scopes that the bot has unless they are taken away.
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

/// Everything there is.
pub(crate) struct World {
    pub(crate) books: Books,
    pub(crate) options: Options,
    /// Where the server is, without a slash at the end; its answers say so.
    pub(crate) url: String,
    pub(crate) people: BTreeMap<String, String>,
    /// The languages of people who have another than `en-US`.
    pub(crate) locales: BTreeMap<String, String>,
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) files: HashMap<String, Stored>,
    /// Files that were taken and have not appeared: when each does, and where.
    pub(crate) unshared: Vec<(Instant, String, Message)>,
    pub(crate) scopes: BTreeSet<String>,
    pub(crate) statuses: Vec<Status>,
    pub(crate) envelopes: Envelopes,
    pub(crate) meter: Meter,
    /// Where events are posted, if they are.
    pub(crate) events_url: Option<String>,
    /// Set when the tokens stopped working: the error that every call gets.
    pub(crate) revoked: Option<String>,
    count: u64,
    last_ts: (u64, u32),
}

/// A conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    pub(crate) id: String,
    pub(crate) title: String,
    /// The person, in a direct message.
    pub(crate) with: Option<String>,
    pub(crate) members: BTreeSet<String>,
    pub(crate) bot_in: bool,
    pub(crate) messages: Vec<Message>,
}

/// Who wrote a message.
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
    /// Whether the text is standard Markdown and not mrkdwn.
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

/// A file, uploaded or on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
    /// What was announced and has not come yet.
    pub(crate) announced: Option<usize>,
    pub(crate) shared: bool,
}

/// What the bot says it does in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The channel.
    pub channel: String,
    /// The thread.
    pub thread: String,
    /// The words; empty once it is cleared.
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

    /// Returns an id of Slack's form.
    pub(crate) fn id(&mut self, kind: char) -> String {
        format!("{kind}0SIM{:06}", self.fresh())
    }

    /// Returns the time as a message's id: unique and growing.
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

    /// Returns the root of the thread that a message stands in or begins.
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
