//! State that the replies and the listener of one account share: the calls with the waits that Discord asks
//! for, the bot's identity, and what happens to interactions.

use super::{
    client::{Client, Told},
    deferred::Deferred,
    failure::{ApiError, Reach},
    places::Places,
    wire::User,
};
use crate::{live::ChatLock, pace::Pacer};
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

/// State that the replies and the listener of one account share.
pub(super) struct Office {
    pub(super) client: Client,
    /// The bot's user, and its application.
    pub(super) me: OnceLock<Me>,
    pub(super) places: Places,
    pub(super) deferred: Deferred,
    /// When each channel may change again.
    pub(super) pacer: Pacer<String>,
    /// The waits that Discord asked for.
    holds: Pacer<(Lane, String)>,
    turns: Mutex<HashMap<String, Weak<Semaphore>>>,
    /// The newest id that was seen anywhere: what comes is newer.
    newest: AtomicU64,
}

/// Identity of the bot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Me {
    pub(super) user: String,
    pub(super) application: String,
    pub(super) name: String,
}

/// Calls that are counted together, in each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    Post,
    Edit,
    Delete,
    Read,
    Sign,
    All,
}

impl Office {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            me: OnceLock::new(),
            places: Places::default(),
            deferred: Deferred::default(),
            pacer: Pacer::default(),
            holds: Pacer::default(),
            turns: Mutex::default(),
            newest: AtomicU64::new(0),
        }
    }

    /// Returns the bot's identity. Asks Discord if no session has told it yet: a reply that a restart cut is
    /// resumed before the connection is there.
    pub(super) async fn me(&self) -> Result<&Me, ApiError> {
        #[derive(Deserialize)]
        struct About {
            id: String,
            bot: Option<User>,
        }
        if let Some(me) = self.me.get() {
            return Ok(me);
        }
        let About { id, bot } =
            self.call(Lane::Read, Method::GET, &["applications", "@me"], &Value::Null).await?;
        let bot = match bot {
            Some(bot) => bot,
            None => self.call(Lane::Read, Method::GET, &["users", "@me"], &Value::Null).await?,
        };
        // The first answer stays: a token's bot does not change.
        Ok(self.me.get_or_init(|| Me { user: bot.id, application: id, name: bot.username }))
    }

    /// Makes a call of a channel, unless it has to wait.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        lane: Lane,
        verb: Method,
        path: &[&str],
        body: &Value,
    ) -> Result<T, ApiError> {
        let channel = path.get(1).copied().unwrap_or_default();
        self.free(&[lane], channel)?;
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
        lane: Lane,
        channel: &str,
        told: Result<Told<T>, ApiError>,
    ) -> Result<T, ApiError> {
        match told {
            Ok(told) => {
                if let Some(wait) = told.full {
                    self.holds.hold(&(lane, channel.to_owned()), wait);
                }
                Ok(told.body)
            }
            Err(error) => {
                match &error {
                    ApiError::Wait(after, Reach::All) => self.holds.hold(&(Lane::All, String::new()), *after),
                    ApiError::Wait(after, Reach::Kind) => {
                        self.holds.hold(&(lane, channel.to_owned()), *after)
                    }
                    _ => {}
                }
                Err(error)
            }
        }
    }

    /// Fails while calls of these kinds in a channel have to wait.
    pub(super) fn free(&self, lanes: &[Lane], channel: &str) -> Result<(), ApiError> {
        if let Some(left) = self.holds.held(&(Lane::All, String::new())) {
            return Err(ApiError::Wait(left, Reach::All));
        }
        let held = lanes.iter().filter_map(|lane| self.holds.held(&(*lane, channel.to_owned()))).max();
        held.map_or(Ok(()), |left| Err(ApiError::Wait(left, Reach::Kind)))
    }

    /// Waits for the turn to send in a channel.
    pub(super) async fn turn(&self, channel: &str) -> ChatLock {
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
