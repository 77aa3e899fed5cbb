//! Discord: direct messages, channels and threads, over the gateway.
//!
//! Deliberately absent: access decisions (made in one place for all platforms), and the content of replies.

mod account_state;
mod answers;
mod catchup;
mod client;
mod decode;
mod deferred;
mod doctor;
mod download;
mod event_handler;
mod facts;
mod form;
mod gateway;
mod guild_cache;
mod listen;
mod looks;
#[cfg(test)]
mod loopback;
mod messages;
mod page;
mod permissions;
mod placing;
mod relay;
mod session;
mod text;
mod unplaced;
mod upload;
mod wire;

pub use decode::ListenRules;

use crate::{
    Address, Attachment, ChannelError, ChatCommand, Check, EventSink, HealthCell, Inbound, PointedAt,
    RecentMessages, ReplyTarget, SendError,
    clock::now,
    platform::{PlatformAccount, check_base_url},
    reply::{Capabilities, PlatformMessages},
    transport::CallError,
};
use account_state::{ApiRoute, DiscordAccountState};
use client::DiscordClient;
use deferred::DiscordHint;
use event_handler::DiscordEventHandler;
use messages::DiscordMessages;
use pudu_net::reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64},
    },
};
use tokio_util::sync::CancellationToken;
use url::Url;

/// URL of Discord's API.
pub const API_URL: &str = "https://discord.com/api";
/// Reaction that marks a message as seen.
const SEEN: &str = "👀";

/// Configuration of a bot.
#[derive(Clone, Debug)]
pub struct DiscordConfig {
    /// Name of the bot: its key under `channels:`.
    pub account: String,
    /// The bot's token.
    pub bot_token: SecretString,
    /// Base URL of the API, without its version; [`API_URL`] unless a proxy replaces it. The API returns the gateway's
    /// URL.
    pub api_url: Url,
    /// Which messages the bot listens to.
    pub rules: ListenRules,
    /// Commands for Discord's menu.
    pub commands: Vec<ChatCommand>,
}

/// A bot on Discord.
pub struct DiscordChannel {
    config: DiscordConfig,
    handler: DiscordEventHandler,
    /// Creation time of this channel, in milliseconds since 1970.
    created_at: i64,
    /// Time up to which all messages were received, in milliseconds since 1970; 0 if never.
    received_until: AtomicI64,
    /// Whether the history has to be searched for messages missed since `received_until`.
    needs_catchup: AtomicBool,
}

impl DiscordChannel {
    /// Creates the channel. Nothing is sent before it listens or replies.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The error gives the reason and contains no secrets.
    pub fn new(config: DiscordConfig) -> Result<Self, ChannelError> {
        check(&config)?;
        let client = DiscordClient::new(config.api_url.clone(), config.bot_token.clone());
        let state = Arc::new(DiscordAccountState::new(client.map_err(ChannelError::Config)?));
        let handler = DiscordEventHandler::new(&config, state);
        let (received_until, needs_catchup) = (AtomicI64::new(0), AtomicBool::new(false));
        Ok(Self { config, handler, created_at: now(), received_until, needs_catchup })
    }
}

fn check(config: &DiscordConfig) -> Result<(), ChannelError> {
    let wrong = |what: &str| Err(ChannelError::Config(what.to_owned()));
    let token = config.bot_token.expose_secret();
    if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
        return wrong("the bot token is empty or contains invalid characters: copy it without \"Bot \"");
    }
    check_base_url("api_url", &config.api_url)
}

impl PlatformAccount for DiscordChannel {
    const TYPE: &'static str = "discord";
    const CAPABILITIES: Capabilities = facts::CAPABILITIES;

    fn bot(&self) -> (&str, &HealthCell) {
        (&self.config.account, &self.handler.health)
    }

    fn threads(&self) -> bool {
        self.config.rules.threads
    }

    async fn run(&self, sink: &dyn EventSink, stop: CancellationToken) -> Result<(), ChannelError> {
        self.receive(sink, stop).await
    }

    async fn doctor(&self) -> Vec<Check> {
        doctor::check(self).await
    }

    fn messages(&self, target: &ReplyTarget) -> impl PlatformMessages {
        DiscordMessages::new(Arc::clone(&self.handler.state), target)
    }

    fn second_target(&self, target: &ReplyTarget) -> ReplyTarget {
        // An interaction has one answer, so a second reply is an ordinary message.
        let answers = matches!(DiscordHint::read(target.hint.as_ref()), Some(DiscordHint::Answer { .. }));
        let hint = target.hint.clone().filter(|_| !answers);
        ReplyTarget { saved: None, hint, ..target.clone() }
    }

    fn lasting_hint(&self, _: &Value) -> Option<Value> {
        // No hint outlives its event: interactions expire, and threads start at the answered message.
        None
    }

    async fn acknowledge(&self, address: &Address, message: &str) -> Result<(), SendError> {
        // The message that begins a thread is outside the thread.
        let outside = address.topic.as_deref() == Some(message);
        let channel = address.topic.as_deref().filter(|_| !outside).unwrap_or(&address.chat);
        let path = ["channels", channel, "messages", message, "reactions", SEEN, "@me"];
        match self.handler.state.call::<Value>(ApiRoute::Interaction, Method::PUT, &path, &Value::Null).await
        {
            // A command is not a message, so it cannot get a reaction.
            Ok(_) | Err(CallError::Gone(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn look_up(&self, inbound: &Inbound, piece: &PointedAt) -> Result<Vec<PointedAt>, SendError> {
        self.read_pointed(inbound, piece).await
    }

    async fn recent(
        &self,
        inbound: &Inbound,
        wanted: RecentMessages<'_>,
    ) -> Result<Vec<PointedAt>, SendError> {
        self.read_recent(inbound, wanted).await
    }

    async fn download(&self, attachment: &Attachment, to: &Path, limit: u64) -> Result<u64, SendError> {
        download::file(&self.handler.state.client, &attachment.handle, to, limit).await
    }
}
