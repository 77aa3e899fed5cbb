//! DingTalk: private chats and groups over Stream mode. Answers are streamed into cards or sent as ordinary messages.
//!
//! Deliberately absent: access decisions (made in one place for all platforms), the content of replies, and HTTP
//! callbacks, which need a public address and offer nothing beyond the stream.

mod api;
mod card;
mod decode;
mod doctor;
mod download;
mod facts;
mod frame;
mod listen;
#[cfg(test)]
mod loopback;
mod messages;
mod names;
mod page;
mod robot;
mod seal;

pub use card::CardStyle;
pub use decode::GroupConversations;

use crate::{
    Address, Attachment, ChannelError, Check, EventSink, HealthCell, ReplyTarget, SendError,
    pace::Pacer,
    platform::{PlatformAccount, check_base_url},
    reply::{Capabilities, NumberedChoices, PlatformMessages},
};
use api::DingTalkApi;
use decode::DingTalkDecoder;
use messages::DingMessages;
use names::Names;
use robot::Robot;
use seal::NameSeal;
use secrecy::{ExposeSecret, SecretString};
use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

/// URL of DingTalk's API.
pub const API_URL: &str = "https://api.dingtalk.com";
/// URL of DingTalk's older API, which accepts uploads and replies to session URLs.
pub const OAPI_URL: &str = "https://oapi.dingtalk.com";

/// Configuration of an app with its robot.
#[derive(Clone, Debug)]
pub struct DingTalkConfig {
    /// Name of the bot: its key under `channels:`.
    pub account: String,
    /// The app's client id.
    pub client_id: String,
    /// The app's secret.
    pub client_secret: SecretString,
    /// The robot's code; usually the client id.
    pub robot_code: String,
    /// Base URL of the API; [`API_URL`] unless a proxy or a simulator replaces it.
    pub api_url: Url,
    /// Base URL of the older API; [`OAPI_URL`] unless another server replaces it.
    pub oapi_url: Url,
    /// Template of the cards; without it answers are ordinary messages.
    pub card: Option<CardStyle>,
    /// Minimum interval between two updates of a growing answer.
    pub stream_interval: Duration,
    /// Boundaries of conversations in a group.
    pub group_conversations: GroupConversations,
    /// Whether the bot stores group messages that do not address it.
    pub reads_groups: bool,
}

/// An app with its robot on DingTalk.
pub struct DingTalkChannel {
    config: DingTalkConfig,
    api: Arc<DingTalkApi>,
    state: Arc<DingTalkAccountState>,
    decoder: DingTalkDecoder,
    names: Names,
    health: HealthCell,
}

/// State shared by all replies of one bot.
struct DingTalkAccountState {
    api: Arc<DingTalkApi>,
    robot_code: String,
    style: Option<CardStyle>,
    interval: Duration,
    seal: NameSeal,
    numbered: Arc<NumberedChoices>,
    /// Rate limits, by chat and for the whole app.
    pacer: Pacer<String>,
    /// Key in `pacer` for the whole app. No chat has this id.
    app_key: String,
    /// Held while cards are suspended, after they failed for all chats.
    rest: Pacer<()>,
    /// Whether the template worked since cards were last suspended.
    cards_work: AtomicBool,
    /// Whether messages can be recalled, and when that knowledge expires.
    recall_support: Mutex<Option<(bool, Instant)>>,
}

impl DingTalkAccountState {
    /// Minimum interval between calls: an app may make twenty calls of one kind per second.
    const PER_CALL: Duration = Duration::from_millis(50);
    /// How long cards are suspended after a failure caused by the app or the template.
    const REST: Duration = Duration::from_secs(10 * 60);

    /// How long pudu remembers whether messages can be recalled.
    const RECALL_SUPPORT_TTL: Duration = Duration::from_secs(60 * 60);

    /// Returns whether messages can be recalled. Asks DingTalk if that is not known.
    async fn supports_recall(&self, robot: &Robot) -> bool {
        let known = *self.recall_support.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((taken, _)) = known.filter(|(_, until)| *until > Instant::now()) {
            return taken;
        }
        let result = robot.supports_recall().await;
        if let Some(taken) = result {
            self.remember_recall_support(taken);
        }
        result.unwrap_or(false)
    }

    /// Records that a message could not be recalled.
    fn record_no_recall(&self) {
        self.remember_recall_support(false);
    }

    fn remember_recall_support(&self, taken: bool) {
        let until = Instant::now() + Self::RECALL_SUPPORT_TTL;
        *self.recall_support.lock().unwrap_or_else(PoisonError::into_inner) = Some((taken, until));
    }

    fn suspend_cards(&self) {
        self.cards_work.store(false, Ordering::Relaxed);
        self.rest.hold(&(), Self::REST);
    }

    fn cards_rest(&self) -> bool {
        self.rest.held(&()).is_some()
    }
}

impl DingTalkChannel {
    /// Creates the channel. Nothing is sent before it listens or replies.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The error says why and contains no secrets.
    pub fn new(config: DingTalkConfig) -> Result<Self, ChannelError> {
        check(&config)?;
        let secret = config.client_secret.clone();
        let seal = NameSeal::new(secret.clone());
        let (api_url, oapi_url) = (config.api_url.clone(), config.oapi_url.clone());
        let api = Arc::new(DingTalkApi::new(config.client_id.clone(), secret, api_url, oapi_url)?);
        let state = DingTalkAccountState {
            api: Arc::clone(&api),
            robot_code: config.robot_code.clone(),
            style: config.card.clone(),
            interval: config.stream_interval,
            seal: seal.clone(),
            numbered: Arc::default(),
            pacer: Pacer::default(),
            app_key: String::new(),
            rest: Pacer::default(),
            cards_work: AtomicBool::new(false),
            recall_support: Mutex::default(),
        };
        let decoder = DingTalkDecoder {
            account: config.account.clone(),
            groups: config.group_conversations,
            reads_groups: config.reads_groups,
            seal,
        };
        let (names, health) = (Names::default(), HealthCell::default());
        Ok(Self { config, api, state: Arc::new(state), decoder, names, health })
    }
}

fn check(config: &DingTalkConfig) -> Result<(), ChannelError> {
    if config.client_id.trim().is_empty() || config.client_secret.expose_secret().trim().is_empty() {
        return Err(ChannelError::Config(
            "client_id and client_secret have to be set: copy them from the app's page in the console"
                .to_owned(),
        ));
    }
    check_base_url("api_url", &config.api_url)?;
    check_base_url("oapi_url", &config.oapi_url)
}

impl PlatformAccount for DingTalkChannel {
    const TYPE: &'static str = "dingtalk";
    const CAPABILITIES: Capabilities = facts::CAPABILITIES;

    fn bot(&self) -> (&str, &HealthCell) {
        (&self.config.account, &self.health)
    }

    async fn run(&self, sink: &dyn EventSink, stop: CancellationToken) -> Result<(), ChannelError> {
        self.receive(sink, stop).await
    }

    async fn doctor(&self) -> Vec<Check> {
        doctor::check(self).await
    }

    fn messages(&self, target: &ReplyTarget) -> impl PlatformMessages {
        DingMessages::new(Arc::clone(&self.state), target)
    }

    /// Does nothing: robots cannot react to messages. The placeholder message acknowledges the question instead.
    async fn acknowledge(&self, _address: &Address, _message: &str) -> Result<(), SendError> {
        Ok(())
    }

    async fn download(&self, attachment: &Attachment, to: &Path, limit: u64) -> Result<u64, SendError> {
        download::file(&self.api, &self.config.robot_code, &attachment.handle, to, limit).await
    }
}
