//! Telegram: private chats, groups and forum topics, by long polling or webhook.
//!
//! Deliberately absent: who may speak (decided in one place for all platforms), and what is said.

mod api;
mod chat_client;
mod chats;
mod client;
mod decode;
mod doctor;
mod download;
mod failure;
mod listen;
#[cfg(test)]
mod loopback;
mod media;
mod messages;
mod pages;
mod search;
mod text;
mod upload;
mod webhook;
mod wire;

use crate::{
    Address, Attachment, BoxFuture, Channel, ChannelError, ChannelLimits, ChatCommand, Check, EventSink,
    Health, HealthCell, LiveReply, ReplyStore, ReplyTarget, SendError, Webhook, pace::Pacer,
    recovery::Recovery, reply::PlatformReply,
};
use chat_client::{TelegramAccountState, TelegramChatClient};
use client::TelegramClient;
use decode::TelegramIdentity;
use messages::TelegramMessages;
use secrecy::{ExposeSecret, SecretString};
use std::{
    path::Path,
    sync::{Arc, OnceLock},
};
use tokio_util::sync::CancellationToken;
use url::Url;
use webhook::TelegramWebhook;

/// URL of Telegram's API.
pub const API_URL: &str = "https://api.telegram.org";

/// One bot.
#[derive(Clone, Debug)]
pub struct TelegramConfig {
    /// The account's name: its key under `channels:`.
    pub account: String,
    /// The bot's token.
    pub token: SecretString,
    /// Base URL of the API; [`API_URL`] unless a proxy or an own server stands in.
    pub api_url: Url,
    /// How updates come.
    pub mode: TelegramUpdateMode,
    /// Whether a message in a group has to address the bot.
    pub require_mention: bool,
    /// The commands for Telegram's menu.
    pub commands: Vec<ChatCommand>,
}

/// How updates come.
#[derive(Clone, Debug)]
pub enum TelegramUpdateMode {
    /// The bot asks for them.
    Polling,
    /// Telegram posts them.
    Webhook {
        /// The webhook's public URL.
        url: Url,
        /// Secret that proves a post to be Telegram's: 1 to 256 letters, digits, `_` and `-`.
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
    /// Makes the channel; nothing is sent before it listens or replies.
    ///
    /// # Errors
    ///
    /// If the configuration cannot work. The text says why and holds no secret.
    pub fn new(config: TelegramConfig) -> Result<Self, ChannelError> {
        check(&config)?;
        let client = TelegramClient::new(config.token.expose_secret(), config.api_url.clone());
        let client = Arc::new(client.map_err(ChannelError::Config)?);
        let state = TelegramAccountState {
            api: client.clone(),
            pacer: Arc::new(Pacer::default()),
            chats: Arc::default(),
            recovery: Recovery::default(),
        };
        Ok(Self { config, client, state, me: Arc::default(), health: HealthCell::default() })
    }

    /// Lets it know who it is without asking.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn introduce(self) -> Self {
        self.me.set(TelegramIdentity { id: 1, username: "pudu_bot".to_owned() }).ok();
        self
    }

    fn chat_client(&self, address: &Address, private: bool) -> TelegramChatClient {
        // No chat has the number 0: Telegram says so where an address is not one of its own.
        TelegramChatClient::new(self.state.clone(), address.chat.parse().unwrap_or(0), private)
    }

    async fn saw(&self, address: &Address, message: &str) -> Result<(), SendError> {
        let id = message.parse().map_err(|_| SendError::Refused("there is no such message".to_owned()))?;
        self.chat_client(address, false).call(&api::TelegramCall::Seen { id }).await?;
        Ok(())
    }
}

fn check(config: &TelegramConfig) -> Result<(), ChannelError> {
    let wrong = |what: &str| Err(ChannelError::Config(what.to_owned()));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let token = config.token.expose_secret();
    if token.is_empty() || !token.chars().all(|c| fits(c) || c == ':') {
        return wrong("the bot token is empty or has characters that no token has: copy it from @BotFather");
    }
    if !matches!(config.api_url.scheme(), "http" | "https") {
        return wrong("api_url has to begin with http:// or https://");
    }
    if let TelegramUpdateMode::Webhook { secret_token, .. } = &config.mode {
        let secret = secret_token.expose_secret();
        if !(1..=256).contains(&secret.len()) || !secret.chars().all(fits) {
            return wrong("a webhook needs a secret_token of 1 to 256 letters, digits, _ and -");
        }
    }
    Ok(())
}

impl Channel for TelegramChannel {
    fn account(&self) -> &str {
        &self.config.account
    }

    fn platform(&self) -> &'static str {
        "telegram"
    }

    fn limits(&self) -> ChannelLimits {
        ChannelLimits { download: download::MAX_DOWNLOAD_BYTES, upload: upload::DOCUMENT, threads: false }
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

    fn check<'a>(&'a self) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(doctor::check(self))
    }

    fn health(&self) -> Health {
        self.health.get()
    }

    fn listen<'a>(
        &'a self,
        sink: &'a dyn EventSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.run(sink, stop))
    }

    fn open_reply(&self, target: ReplyTarget, store: Box<dyn ReplyStore>) -> Box<dyn LiveReply> {
        let chat_client = self.chat_client(&target.address, target.private);
        Box::new(PlatformReply::open(TelegramMessages::new(chat_client, &target), &target, store))
    }

    fn acknowledge<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(self.saw(address, message))
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        to: &'a Path,
        limit: u64,
    ) -> BoxFuture<'a, Result<u64, SendError>> {
        Box::pin(download::file(&self.client, attachment, to, limit))
    }
}
