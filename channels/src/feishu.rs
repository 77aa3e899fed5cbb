//! Feishu and Lark: private chats, groups and topics, by long connection or webhook.
//!
//! Deliberately absent: access decisions (made in one place for all platforms), and the content of replies.

mod card;
mod chat_cache;
mod chat_client;
mod client;
mod content;
mod doctor;
mod download;
mod event;
mod event_parser;
mod failure;
mod frame;
mod hook;
mod listen;
mod messages;
mod pointed;
mod protocol;
mod seal;
mod upload;

use crate::{
    Address, Attachment, ChannelError, Check, EventSink, HealthCell, Inbound, PointedAt, RecentMessages,
    ReplyTarget, SendError, Webhook,
    pace::Pacer,
    platform::{PlatformAccount, check_base_url},
    reply::{Capabilities, PlatformMessages},
    transport::KeyedLocks,
};
use chat_cache::{ChatCache, plain};
use chat_client::{FeishuAccountState, FeishuChatClient};
use client::FeishuClient;
use event_parser::FeishuEventParser;
use hook::FeishuWebhook;
use messages::FeishuMessages;
use pudu_net::reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use url::Url;

/// URL of Feishu's platform; that of Lark's is `https://open.larksuite.com`.
pub const DOMAIN: &str = "https://open.feishu.cn";
/// How often an unfinished reply changes unless the configuration says otherwise.
pub const STREAM_INTERVAL: Duration = Duration::from_millis(500);
/// Reaction on a message that waits.
const SEEN: &str = "OK";

/// One self-built app.
#[derive(Clone, Debug)]
pub struct FeishuConfig {
    /// The account's name: its key under `channels:`.
    pub account: String,
    /// The app's id.
    pub app_id: String,
    /// The app's secret.
    pub app_secret: SecretString,
    /// Base URL of the platform; [`DOMAIN`] unless Lark, a proxy or a private deployment replaces it.
    pub domain: Url,
    /// How events come.
    pub mode: FeishuEventMode,
    /// Whether a message in a group has to address the bot.
    pub require_mention: bool,
    /// How often an unfinished reply may change.
    pub stream_interval: Duration,
}

/// How events come.
#[derive(Clone, Debug)]
pub enum FeishuEventMode {
    /// Over a connection that pudu opens.
    LongConnection,
    /// Feishu posts them.
    Webhook {
        /// Key by which posts are sealed and signed.
        encrypt_key: SecretString,
        /// Token that each post contains.
        verification_token: SecretString,
    },
}

/// Feeds a connection any bytes, cut into messages by a length before each.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz_frames(mut data: &[u8]) {
    let mut protocol = protocol::Protocol::new(1);
    while let Some((length, rest)) = data.split_first() {
        let (message, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        if let protocol::ProtocolStep::Event(delivery) = protocol.push(message, tokio::time::Instant::now()) {
            delivery.acknowledge(Ok(None), Duration::ZERO);
        }
        data = rest;
    }
}

/// Seals a body as the platform does.
#[cfg(feature = "fuzzing")]
pub(crate) use seal::close as seal;

/// A bot on Feishu or Lark.
pub struct FeishuChannel {
    config: FeishuConfig,
    state: FeishuAccountState,
    me: Arc<OnceLock<String>>,
    health: HealthCell,
    /// The right to keep an event, in each chat.
    order: Arc<KeyedLocks<String>>,
}

impl FeishuChannel {
    /// Makes the channel; nothing is sent before it listens or replies.
    ///
    /// # Errors
    ///
    /// If the configuration cannot work. The text says why and holds no secret.
    pub fn new(config: FeishuConfig) -> Result<Self, ChannelError> {
        check(&config)?;
        let client =
            FeishuClient::new(config.domain.clone(), config.app_id.clone(), config.app_secret.clone())?;
        let state = FeishuAccountState {
            client: Arc::new(client),
            pacer: Arc::new(Pacer::default()),
            bucket: Arc::new(chat_client::bucket()),
            places: Arc::new(ChatCache::default()),
            numbered: Arc::default(),
            interval: config.stream_interval,
        };
        Ok(Self { config, state, me: Arc::default(), health: HealthCell::default(), order: Arc::default() })
    }

    /// Lets it know who it is without asking.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn with_identity(self) -> Self {
        self.me.set("ou_me".to_owned()).ok();
        self
    }

    fn parser(&self) -> FeishuEventParser {
        FeishuEventParser {
            account: self.config.account.clone(),
            client: Arc::clone(&self.state.client),
            places: Arc::clone(&self.state.places),
            numbered: Arc::clone(&self.state.numbered),
            me: Arc::clone(&self.me),
            require_mention: self.config.require_mention,
            health: self.health.clone(),
            order: Arc::clone(&self.order),
        }
    }
}

fn check(config: &FeishuConfig) -> Result<(), ChannelError> {
    let wrong = |what: &str| Err(ChannelError::Config(what.to_owned()));
    if config.app_id.trim().is_empty() || config.app_secret.expose_secret().trim().is_empty() {
        return wrong("app_id and app_secret are needed: the developer console shows both");
    }
    check_base_url("domain", &config.domain)?;
    if let FeishuEventMode::Webhook { encrypt_key, verification_token } = &config.mode
        && (encrypt_key.expose_secret().is_empty() || verification_token.expose_secret().is_empty())
    {
        return wrong("a webhook needs encrypt_key and verification_token: without them anybody could post");
    }
    Ok(())
}

impl PlatformAccount for FeishuChannel {
    const TYPE: &'static str = "feishu";
    const CAPABILITIES: Capabilities = FeishuMessages::CAPABILITIES;

    fn account(&self) -> &str {
        &self.config.account
    }

    fn health(&self) -> &HealthCell {
        &self.health
    }

    async fn run(&self, sink: &dyn EventSink, stop: CancellationToken) -> Result<(), ChannelError> {
        self.receive(sink, stop).await
    }

    fn webhook(&self) -> Option<Arc<dyn Webhook>> {
        let FeishuEventMode::Webhook { encrypt_key, verification_token } = &self.config.mode else {
            return None;
        };
        Some(Arc::new(FeishuWebhook {
            parser: self.parser(),
            encrypt_key: encrypt_key.clone(),
            verification_token: verification_token.clone(),
        }))
    }

    async fn doctor(&self) -> Vec<Check> {
        doctor::check(self).await
    }

    fn messages(&self, target: &ReplyTarget) -> impl PlatformMessages {
        FeishuMessages::new(FeishuChatClient::new(self.state.clone(), target))
    }

    /// The platform puts an emoji on a message once, however often it is asked.
    async fn acknowledge(&self, _address: &Address, message: &str) -> Result<(), SendError> {
        let id = plain(message).ok_or_else(|| SendError::Refused("there is no such message".to_owned()))?;
        let body = json!({"reaction_type": {"emoji_type": SEEN}});
        self.state.client.call(Method::POST, &format!("im/v1/messages/{id}/reactions"), Some(&body)).await?;
        Ok(())
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
        download::file(&self.state.client, &attachment.handle, to, limit).await
    }
}
