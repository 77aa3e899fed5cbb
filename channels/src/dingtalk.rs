//! DingTalk: single chats and groups over Stream mode, answers in cards that grow or in ordinary messages.
//!
//! Deliberately absent: access decisions (made in one place for all platforms), the content of replies, and HTTP
//! callbacks, which need a public address and add nothing to the stream.

mod api;
mod card;
mod decode;
mod doctor;
mod download;
mod failure;
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
/// URL of DingTalk's older API, which takes uploads and answers to a message's own address.
pub const OAPI_URL: &str = "https://oapi.dingtalk.com";

/// One app with its robot.
#[derive(Clone, Debug)]
pub struct DingTalkConfig {
    /// The account's name: its key under `channels:`.
    pub account: String,
    /// The app's client id.
    pub client_id: String,
    /// The app's secret.
    pub client_secret: SecretString,
    /// The robot's code; mostly the client id.
    pub robot_code: String,
    /// Base URL of the API; [`API_URL`] unless a proxy or a simulator replaces it.
    pub api_url: Url,
    /// Base URL of the older API; [`OAPI_URL`] unless another server replaces it.
    pub oapi_url: Url,
    /// How cards look; without it answers are ordinary messages.
    pub card: Option<CardStyle>,
    /// How often a growing answer may change.
    pub stream_interval: Duration,
    /// Boundaries of conversations in a group.
    pub group_conversations: GroupConversations,
    /// Whether the account keeps messages of groups that do not address the bot.
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

/// State that the replies of one account share.
struct DingTalkAccountState {
    api: Arc<DingTalkApi>,
    robot_code: String,
    style: Option<CardStyle>,
    interval: Duration,
    seal: NameSeal,
    numbered: Arc<NumberedChoices>,
    /// By chat, and for the app as a whole.
    pacer: Pacer<String>,
    /// The key of the app as a whole: no chat is called so.
    everybody: String,
    /// End of the time in which cards are not used, after they failed for all chats.
    rest: Mutex<Option<Instant>>,
    /// Whether a card of the template was written with success since cards were last left alone.
    cards_work: AtomicBool,
    /// Whether messages are taken back, and until when that is believed.
    taken_back: Mutex<Option<(bool, Instant)>>,
}

impl DingTalkAccountState {
    /// An app may make twenty calls of one kind in a second.
    const PER_CALL: Duration = Duration::from_millis(50);
    /// How long cards are left alone when the fault is the app's or the template's.
    const REST: Duration = Duration::from_secs(10 * 60);

    /// How long it is believed that messages are taken back, or are not.
    const BELIEVED: Duration = Duration::from_secs(60 * 60);

    /// Returns whether a message can be taken back; asks DingTalk where that is not known.
    async fn takes_back(&self, robot: &Robot) -> bool {
        let known = *self.taken_back.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((taken, _)) = known.filter(|(_, until)| *until > Instant::now()) {
            return taken;
        }
        let told = robot.takes_back(&self.api).await;
        if let Some(taken) = told {
            self.remember_recall_support(taken);
        }
        told.unwrap_or(false)
    }

    /// A message was not taken back.
    fn takes_nothing_back(&self) {
        self.remember_recall_support(false);
    }

    fn remember_recall_support(&self, taken: bool) {
        let until = Instant::now() + Self::BELIEVED;
        *self.taken_back.lock().unwrap_or_else(PoisonError::into_inner) = Some((taken, until));
    }

    fn rest_cards(&self) {
        self.cards_work.store(false, Ordering::Relaxed);
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + Self::REST);
    }

    fn cards_rest(&self) -> bool {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| until > Instant::now())
    }
}

impl DingTalkChannel {
    /// Makes the channel; nothing is sent before it listens or replies.
    ///
    /// # Errors
    ///
    /// If the configuration cannot work. The text says why and holds no secret.
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
            everybody: String::new(),
            rest: Mutex::default(),
            cards_work: AtomicBool::new(false),
            taken_back: Mutex::default(),
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
    const CAPABILITIES: Capabilities = DingMessages::CAPABILITIES;

    fn account(&self) -> &str {
        &self.config.account
    }

    fn health(&self) -> &HealthCell {
        &self.health
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

    /// Robots cannot react to messages; the message that holds the answer's place says enough.
    async fn acknowledge(&self, _address: &Address, _message: &str) -> Result<(), SendError> {
        Ok(())
    }

    async fn download(&self, attachment: &Attachment, to: &Path, limit: u64) -> Result<u64, SendError> {
        download::file(&self.api, &self.config.robot_code, &attachment.handle, to, limit).await
    }
}
