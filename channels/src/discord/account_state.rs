//! What the replies and the listener of one account share: the calls with the waits that Discord asks for,
//! who the bot is, and what happens to interactions.

use super::{
    client::{DiscordClient, DiscordResponse},
    deferred::Deferred,
    failure::{DiscordApiError, Reach},
    guild_cache::GuildCache,
    wire::DiscordUser,
};
use crate::{pace::Pacer, reply::ChatLock};
use pudu_net::reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

/// How often unfinished replies of one channel may change: five changes in five seconds are free, and other
/// calls need room too.
pub(super) const INTERVAL: Duration = Duration::from_millis(1200);
/// Maximum number of channels remembered.
const MAX_TRACKED_CHANNELS: usize = 4096;

/// What the replies and the listener of one account share.
pub(super) struct DiscordAccountState {
    pub(super) client: DiscordClient,
    /// The bot's user, and its application.
    pub(super) me: OnceLock<DiscordIdentity>,
    pub(super) places: GuildCache,
    pub(super) deferred: Deferred,
    /// When each channel may change again.
    pub(super) pacer: Pacer<String>,
    /// What Discord asks to wait for.
    holds: Pacer<(ApiRoute, String)>,
    turns: Mutex<HashMap<String, Weak<Semaphore>>>,
    /// The newest id that was seen anywhere: what comes is newer.
    newest: AtomicU64,
}

/// Who the bot is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DiscordIdentity {
    pub(super) user: String,
    pub(super) application: String,
    pub(super) name: String,
}

/// Calls that are counted together, in each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ApiRoute {
    Post,
    Edit,
    Delete,
    Read,
    Sign,
    All,
}

impl DiscordAccountState {
    pub(super) fn new(client: DiscordClient) -> Self {
        Self {
            client,
            me: OnceLock::new(),
            places: GuildCache::default(),
            deferred: Deferred::default(),
            pacer: Pacer::default(),
            holds: Pacer::default(),
            turns: Mutex::default(),
            newest: AtomicU64::new(0),
        }
    }

    /// Tells who the bot is. Discord is asked where no session has said it yet: a reply that a restart cut is
    /// taken up before the connection is there.
    pub(super) async fn me(&self) -> Result<&DiscordIdentity, DiscordApiError> {
        #[derive(Deserialize)]
        struct About {
            id: String,
            bot: Option<DiscordUser>,
        }
        if let Some(me) = self.me.get() {
            return Ok(me);
        }
        let About { id, bot } =
            self.call(ApiRoute::Read, Method::GET, &["applications", "@me"], &Value::Null).await?;
        let bot = match bot {
            Some(bot) => bot,
            None => self.call(ApiRoute::Read, Method::GET, &["users", "@me"], &Value::Null).await?,
        };
        // The first answer stays: a token's bot does not change.
        Ok(self.me.get_or_init(|| DiscordIdentity { user: bot.id, application: id, name: bot.username }))
    }

    /// Makes a call of a channel, unless it has to wait.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        lane: ApiRoute,
        verb: Method,
        path: &[&str],
        body: &Value,
    ) -> Result<T, DiscordApiError> {
        let channel = path.get(1).copied().unwrap_or_default();
        self.check_rate_limit(&[lane], channel)?;
        let told = match body {
            Value::Null => {
                self.client.request(verb, path).map(|request| request.header("content-length", "0"))
            }
            _ => self.client.request(verb, path).map(|request| request.json(body)),
        };
        let told = self.client.send(told?).await;
        self.heed(lane, channel, told)
    }

    /// Keeps what an answer says of limits.
    pub(super) fn heed<T>(
        &self,
        lane: ApiRoute,
        channel: &str,
        told: Result<DiscordResponse<T>, DiscordApiError>,
    ) -> Result<T, DiscordApiError> {
        match told {
            Ok(told) => {
                if let Some(wait) = told.full {
                    self.holds.hold(&(lane, channel.to_owned()), wait);
                }
                Ok(told.body)
            }
            Err(error) => {
                match &error {
                    DiscordApiError::Wait(after, Reach::All) => {
                        self.holds.hold(&(ApiRoute::All, String::new()), *after)
                    }
                    DiscordApiError::Wait(after, Reach::Kind) => {
                        self.holds.hold(&(lane, channel.to_owned()), *after)
                    }
                    _ => {}
                }
                Err(error)
            }
        }
    }

    /// Fails while calls of these kinds in a channel have to wait.
    pub(super) fn check_rate_limit(&self, lanes: &[ApiRoute], channel: &str) -> Result<(), DiscordApiError> {
        if let Some(left) = self.holds.held(&(ApiRoute::All, String::new())) {
            return Err(DiscordApiError::Wait(left, Reach::All));
        }
        let held = lanes.iter().filter_map(|lane| self.holds.held(&(*lane, channel.to_owned()))).max();
        held.map_or(Ok(()), |left| Err(DiscordApiError::Wait(left, Reach::Kind)))
    }

    /// Waits for the turn to send in a channel.
    pub(super) async fn lock_chat(&self, channel: &str) -> ChatLock {
        // Never closed, so that there always is a turn.
        self.turns_of(channel).acquire_owned().await.ok()
    }

    fn turns_of(&self, channel: &str) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= MAX_TRACKED_CHANNELS {
            turns.retain(|_, turns| turns.strong_count() > 0);
        }
        turns.get(channel).and_then(Weak::upgrade).unwrap_or_else(|| {
            let fresh = Arc::new(Semaphore::new(1));
            turns.insert(channel.to_owned(), Arc::downgrade(&fresh));
            fresh
        })
    }

    /// An id was seen.
    pub(super) fn saw(&self, id: &str) {
        if let Ok(id) = id.parse() {
            self.newest.fetch_max(id, Ordering::Relaxed);
        }
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }
}
