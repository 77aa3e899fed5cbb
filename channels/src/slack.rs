//! Slack: direct messages, channels and threads, over Socket Mode or by posted events.
//!
//! Deliberately absent: access decisions (made in one place for all platforms), and the content of replies.

mod account_state;
mod blocks;
mod catchup;
mod client;
mod decode;
mod doctor;
mod download;
mod event_handler;
mod facts;
mod form;
mod listen;
mod messages;
mod page;
mod people;
mod text;
mod threads;
mod upload;
mod webhook;
mod wire;

use crate::{
    Address, Attachment, ChannelError, ChatCommand, Check, EventSink, HealthCell, Inbound, PointedAt,
    RecentMessages, ReplyTarget, SendError, Webhook,
    clock::now,
    platform::{PlatformAccount, check_base_url},
    reply::{Capabilities, PlatformMessages},
    transport::CallError,
};
use account_state::SlackAccountState;
use client::SlackClient;
use event_handler::SlackEventHandler;
use messages::SlackMessages;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, atomic::AtomicI64},
};
use tokio_util::sync::CancellationToken;
use url::Url;
use webhook::SlackWebhook;

/// URL of Slack's API.
pub const API_URL: &str = "https://slack.com/api";
/// Reaction on a message that was seen.
const SEEN: &str = "eyes";

/// Configuration of an app in one workspace.
#[derive(Clone, Debug)]
pub struct SlackConfig {
    /// Name of the bot: its key under `channels:`.
    pub account: String,
    /// The bot's token, `xoxb-`.
    pub bot_token: SecretString,
    /// Base URL of the API; [`API_URL`] unless a proxy replaces it.
    pub api_url: Url,
    /// How events are delivered.
    pub delivery: SlackEventMode,
    /// Whether a message in a channel has to mention the bot, or be in a thread where the bot has spoken.
    pub require_mention: bool,
    /// The bot's user id from the configuration; Slack reports it as well.
    pub bot_user_id: Option<String>,
    /// Slash commands.
    pub commands: Vec<ChatCommand>,
}

/// How events are delivered.
#[derive(Clone, Debug)]
pub enum SlackEventMode {
    /// Over a connection that the bot opens.
    Socket {
        /// The app's token, `xapp-`.
        app_token: SecretString,
    },
    /// Slack posts them.
    Http {
        /// Secret for verifying that a post is Slack's.
        signing_secret: SecretString,
    },
}

/// A bot on Slack.
pub struct SlackChannel {
    config: SlackConfig,
    handler: SlackEventHandler,
    /// Creation time of this channel, in milliseconds since 1970.
    made: i64,
    /// Time up to which all messages were received, in milliseconds since 1970; 0 if never.
    heard: AtomicI64,
}

impl SlackChannel {
    /// Sets the bot's identity, so that it need not be requested.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn with_identity(self) -> Self {
        let [user, bot, team] = ["U1", "B1", "T1"].map(str::to_owned);
        self.handler.state.me.set(wire::SlackIdentity { user, bot, team }).ok();
        self
    }

    /// Creates the channel. Nothing is sent before it listens or replies.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The error says why and contains no secrets.
    pub fn new(config: SlackConfig) -> Result<Self, ChannelError> {
        check(&config)?;
        let app_token = match &config.delivery {
            SlackEventMode::Socket { app_token } => Some(app_token.clone()),
            SlackEventMode::Http { .. } => None,
        };
        let client = SlackClient::new(config.api_url.clone(), config.bot_token.clone(), app_token);
        let handler = SlackEventHandler {
            account: config.account.as_str().into(),
            state: Arc::new(SlackAccountState::new(client.map_err(ChannelError::Config)?)),
            require_mention: config.require_mention,
            commands: config.commands.clone().into(),
            health: HealthCell::default(),
            order: Arc::default(),
        };
        Ok(Self { config, handler, made: now(), heard: AtomicI64::new(0) })
    }
}

fn check(config: &SlackConfig) -> Result<(), ChannelError> {
    let wrong = |what: &str| Err(ChannelError::Config(what.to_owned()));
    let fits = |token: &SecretString| {
        let token = token.expose_secret();
        !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic())
    };
    if !fits(&config.bot_token) {
        return wrong("the bot token is empty or contains invalid characters");
    }
    check_base_url("api_url", &config.api_url)?;
    match &config.delivery {
        SlackEventMode::Socket { app_token } if !fits(app_token) => {
            wrong("Socket Mode needs an app_token (xapp-)")
        }
        SlackEventMode::Http { signing_secret } if !fits(signing_secret) => {
            wrong("`event_delivery: http` needs a signing_secret: without it, anyone could post events")
        }
        SlackEventMode::Socket { .. } | SlackEventMode::Http { .. } => Ok(()),
    }
}

impl PlatformAccount for SlackChannel {
    const TYPE: &'static str = "slack";
    const CAPABILITIES: Capabilities = facts::CAPABILITIES;

    fn bot(&self) -> (&str, &HealthCell) {
        (&self.config.account, &self.handler.health)
    }

    fn threads(&self) -> bool {
        true
    }

    async fn run(&self, sink: &dyn EventSink, stop: CancellationToken) -> Result<(), ChannelError> {
        self.receive(sink, stop).await
    }

    fn webhook(&self) -> Option<Arc<dyn Webhook>> {
        let SlackEventMode::Http { signing_secret } = &self.config.delivery else { return None };
        Some(Arc::new(SlackWebhook { handler: self.handler.clone(), secret: signing_secret.clone() }))
    }

    async fn doctor(&self) -> Vec<Check> {
        doctor::check(self).await
    }

    fn messages(&self, target: &ReplyTarget) -> impl PlatformMessages {
        SlackMessages::new(Arc::clone(&self.handler.state), target)
    }

    fn lasting_hint(&self, hint: &Value) -> Option<Value> {
        // The response URL of a slash command expires.
        Some(json!({"team": hint["team"]}))
    }

    async fn acknowledge(&self, address: &Address, message: &str) -> Result<(), SendError> {
        // A slash command has no message to react to.
        if !message.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(());
        }
        let params = json!({"channel": address.chat, "timestamp": message, "name": SEEN});
        match self.handler.state.call_without_result("reactions.add", &address.chat, &params).await {
            Err(CallError::Refused(why)) if why == "already_reacted" => Ok(()),
            result => Ok(result?),
        }
    }

    async fn look_up(&self, inbound: &Inbound, piece: &PointedAt) -> Result<Vec<PointedAt>, SendError> {
        decode::pointed::look_up(&self.handler.state, inbound, piece).await
    }

    async fn recent(
        &self,
        inbound: &Inbound,
        wanted: RecentMessages<'_>,
    ) -> Result<Vec<PointedAt>, SendError> {
        decode::pointed::recent(&self.handler.state, inbound, wanted).await
    }

    async fn download(&self, attachment: &Attachment, to: &Path, limit: u64) -> Result<u64, SendError> {
        download::file(&self.handler.state.client, attachment, to, limit).await
    }
}
