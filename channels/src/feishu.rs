//! Feishu and Lark: private chats, groups and topics, over a long connection or a webhook.
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
mod facts;
mod form;
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
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use url::Url;

/// URL of Feishu's platform. Lark's is `https://open.larksuite.com`.
pub const DOMAIN: &str = "https://open.feishu.cn";
/// Default interval between two updates of an unfinished reply.
pub const STREAM_INTERVAL: Duration = Duration::from_millis(500);
/// Reaction on a message that was seen.
const SEEN: &str = "OK";

/// Configuration of a self-built app.
#[derive(Clone, Debug)]
pub struct FeishuConfig {
    /// Name of the bot: its key under `channels:`.
    pub account: String,
    /// Id of the app.
    pub app_id: String,
    /// The app's secret.
    pub app_secret: SecretString,
    /// Base URL of the platform; [`DOMAIN`] unless Lark, a proxy or a private deployment replaces it.
    pub domain: Url,
    /// How events are delivered.
    pub mode: FeishuEventMode,
    /// Whether a message in a group has to address the bot.
    pub require_mention: bool,
    /// Minimum interval between two updates of an unfinished reply.
    pub stream_interval: Duration,
}

/// How events are delivered.
#[derive(Clone, Debug)]
pub enum FeishuEventMode {
    /// Over a connection that pudu opens.
    LongConnection,
    /// Feishu posts them.
    Webhook {
        /// Key for encrypting and signing posts.
        encrypt_key: SecretString,
        /// Token that each post contains.
        verification_token: SecretString,
    },
}

/// Feeds arbitrary bytes to a connection, as messages that each begin with a length byte.
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

/// Encrypts a body as the platform does.
#[cfg(feature = "fuzzing")]
pub(crate) use seal::close as seal;

/// A bot on Feishu or Lark.
pub struct FeishuChannel {
    config: FeishuConfig,
    state: FeishuAccountState,
    me: Arc<OnceLock<String>>,
    health: HealthCell,
    /// Locks that keep the events of each chat in order.
    order: Arc<KeyedLocks<String>>,
}

impl FeishuChannel {
    /// Creates the channel. Nothing is sent before it listens or replies.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The error says why and contains no secrets.
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

    /// Sets the bot's identity, so that it need not be requested.
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
        return wrong("app_id and app_secret are required: copy both from the developer console");
    }
    check_base_url("domain", &config.domain)?;
    if let FeishuEventMode::Webhook { encrypt_key, verification_token } = &config.mode
        && (encrypt_key.expose_secret().is_empty() || verification_token.expose_secret().is_empty())
    {
        return wrong(
            "a webhook needs encrypt_key and verification_token: without them, anyone could post events",
        );
    }
    Ok(())
}

impl PlatformAccount for FeishuChannel {
    const TYPE: &'static str = "feishu";
    const CAPABILITIES: Capabilities = facts::CAPABILITIES;

    fn bot(&self) -> (&str, &HealthCell) {
        (&self.config.account, &self.health)
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

    /// Adds a reaction to a message. Repeating it has no effect.
    fn lasting_hint(&self, _: &Value) -> Option<Value> {
        // It names the thread of the message that was answered.
        None
    }

    async fn acknowledge(&self, _address: &Address, message: &str) -> Result<(), SendError> {
        let id = plain(message).ok_or_else(|| SendError::Refused("the message does not exist".to_owned()))?;
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
