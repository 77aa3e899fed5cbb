//! Telegram: private chats, groups and forum topics, over long polling or a webhook.
//!
//! Deliberately absent: access decisions (made in one place for all platforms), and the content of replies.

mod api;
mod calls;
mod chat_client;
mod chats;
mod client;
mod decode;
mod doctor;
mod download;
mod facts;
mod listen;
#[cfg(test)]
mod loopback;
mod media;
mod messages;
mod pages;
mod pointed;
mod search;
mod text;
mod upload;
mod webhook;
mod wire;

use crate::{
    Address, Attachment, ChannelError, ChatCommand, Check, EventSink, HealthCell, ReplyTarget, SendError,
    Webhook,
    pace::Pacer,
    platform::{PlatformAccount, check_base_url},
    reply::{Capabilities, PlatformMessages},
};
use chat_client::{TelegramAccountState, TelegramChatClient};
use client::TelegramClient;
use messages::TelegramMessages;
use secrecy::{ExposeSecret, SecretString};
use std::{
    path::Path,
    sync::{Arc, OnceLock},
};
use tokio_util::sync::CancellationToken;
use url::Url;
use webhook::TelegramWebhook;
use wire::TelegramIdentity;

/// URL of Telegram's API.
pub const API_URL: &str = "https://api.telegram.org";

/// Configuration of a bot.
#[derive(Clone, Debug)]
pub struct TelegramConfig {
    /// Name of the bot: its key under `channels:`.
    pub account: String,
    /// The bot's token.
    pub token: SecretString,
    /// Base URL of the API; [`API_URL`] unless a proxy or a self-hosted server replaces it.
    pub api_url: Url,
    /// How updates are delivered.
    pub mode: TelegramUpdateMode,
    /// Whether a message in a group has to address the bot.
    pub require_mention: bool,
    /// Whether the bot stores group messages that do not address it.
    pub reads_groups: bool,
    /// Commands for Telegram's menu.
    pub commands: Vec<ChatCommand>,
}

/// How updates are delivered.
#[derive(Clone, Debug)]
pub enum TelegramUpdateMode {
    /// The bot polls for them.
    Polling,
    /// Telegram posts them.
    Webhook {
        /// The webhook's public URL.
        url: Url,
        /// Secret that proves that a post is Telegram's: 1 to 256 letters, digits, `_` and `-`.
        secret_token: SecretString,
    },
}

/// A bot on Telegram.
pub struct TelegramChannel {
    config: TelegramConfig,
    client: Arc<TelegramClient>,
    state: TelegramAccountState,
    me: Arc<OnceLock<TelegramIdentity>>,
    health: HealthCell,
}

impl TelegramChannel {
    /// Creates the channel. Nothing is sent before it listens or replies.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The error says why and contains no secrets.
    pub fn new(config: TelegramConfig) -> Result<Self, ChannelError> {
        check(&config)?;
        let client = TelegramClient::new(config.token.clone(), config.api_url.clone());
        let client = Arc::new(client.map_err(ChannelError::Config)?);
        let state = TelegramAccountState {
            api: client.clone(),
            pacer: Arc::new(Pacer::default()),
            chats: Arc::default(),
            transport: client.transport.clone(),
        };
        Ok(Self { config, client, state, me: Arc::default(), health: HealthCell::default() })
    }

    /// Sets the bot's identity, so that it need not be requested.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn with_identity(self) -> Self {
        self.me.set(TelegramIdentity { id: 1, username: "pudu_bot".to_owned() }).ok();
        self
    }

    fn chat_client(&self, address: &Address, private: bool) -> TelegramChatClient {
        // No chat has the id 0, so Telegram refuses an invalid address.
        TelegramChatClient::new(self.state.clone(), address.chat.parse().unwrap_or(0), private)
    }
}

fn check(config: &TelegramConfig) -> Result<(), ChannelError> {
    let wrong = |what: &str| Err(ChannelError::Config(what.to_owned()));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let token = config.token.expose_secret();
    if token.is_empty() || !token.chars().all(|c| fits(c) || c == ':') {
        return wrong("the bot token is empty or contains invalid characters: copy it from @BotFather");
    }
    check_base_url("api_url", &config.api_url)?;
    if let TelegramUpdateMode::Webhook { secret_token, .. } = &config.mode {
        let secret = secret_token.expose_secret();
        if !(1..=256).contains(&secret.len()) || !secret.chars().all(fits) {
            return wrong("a webhook needs a secret_token of 1 to 256 letters, digits, _ and -");
        }
    }
    Ok(())
}

impl PlatformAccount for TelegramChannel {
    const TYPE: &'static str = "telegram";
    const CAPABILITIES: Capabilities = facts::CAPABILITIES;

    fn bot(&self) -> (&str, &HealthCell) {
        (&self.config.account, &self.health)
    }

    async fn run(&self, sink: &dyn EventSink, stop: CancellationToken) -> Result<(), ChannelError> {
        self.receive(sink, stop).await
    }

    fn webhook(&self) -> Option<Arc<dyn Webhook>> {
        let TelegramUpdateMode::Webhook { secret_token, .. } = &self.config.mode else { return None };
        Some(Arc::new(TelegramWebhook {
            account: self.config.account.clone(),
            secret: secret_token.clone(),
            require_mention: self.config.require_mention,
            me: Arc::clone(&self.me),
            chats: Arc::clone(&self.state.chats),
            health: self.health.clone(),
        }))
    }

    fn connect_link(&self, code: &str) -> Option<String> {
        let me = self.me.get()?;
        Some(format!("https://t.me/{}?start={code}", me.username))
    }

    async fn doctor(&self) -> Vec<Check> {
        doctor::check(self).await
    }

    fn messages(&self, target: &ReplyTarget) -> impl PlatformMessages {
        TelegramMessages::new(self.chat_client(&target.address, target.private), target)
    }

    async fn acknowledge(&self, address: &Address, message: &str) -> Result<(), SendError> {
        let id = message.parse().map_err(|_| SendError::Refused("the message does not exist".to_owned()))?;
        self.chat_client(address, false).call(&api::TelegramCall::Seen { id }).await?;
        Ok(())
    }

    /// Deletes the message: a bot may delete any message of a private chat.
    async fn forget(&self, address: &Address, message: &str) -> Result<bool, SendError> {
        let id = message.parse().map_err(|_| SendError::Refused("the message does not exist".to_owned()))?;
        self.chat_client(address, true).call(&api::TelegramCall::Delete { id }).await?;
        Ok(true)
    }

    async fn download(&self, attachment: &Attachment, to: &Path, limit: u64) -> Result<u64, SendError> {
        download::file(&self.client, &attachment.handle, to, limit).await
    }
}
