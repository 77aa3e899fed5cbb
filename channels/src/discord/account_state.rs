//! State shared by the replies and the listener of one bot: API calls within Discord's rate limits, the bot's identity,
//! and the state of interactions.

use super::{
    client::{DiscordClient, DiscordResponse},
    deferred::Deferred,
    facts::DiscordError,
    guild_cache::GuildCache,
    wire::{DiscordMessage, DiscordUser},
};
use crate::{
    pace::Pacer,
    transport::{CallEffect, CallError, KeyedLocks},
};
use pudu_net::reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Minimum interval between updates of unfinished replies in one channel. Discord allows five in five seconds, and
/// other calls need room too.
pub(super) const INTERVAL: Duration = Duration::from_millis(1200);
/// Number of messages per page of a history.
const PAGE: &str = "100";

/// State shared by the replies and the listener of one bot.
pub(super) struct DiscordAccountState {
    pub(super) client: DiscordClient,
    /// Identity of the bot.
    pub(super) me: OnceLock<DiscordIdentity>,
    pub(super) guilds: GuildCache,
    pub(super) deferred: Deferred,
    /// Rate limits of updates, by channel.
    pub(super) pacer: Pacer<String>,
    /// Delays requested by Discord.
    holds: Pacer<(ApiRoute, String)>,
    /// Locks that let only one reply at a time send in a channel.
    pub(super) locks: KeyedLocks<String>,
    /// The newest id seen in any channel. Later messages have higher ids.
    newest: AtomicU64,
}

/// Identity of the bot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DiscordIdentity {
    pub(super) user: String,
    pub(super) application: String,
    pub(super) name: String,
}

/// Kind of call. Each kind has its own rate limit per channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ApiRoute {
    Post,
    Edit,
    Delete,
    Read,
    Interaction,
    All,
}

/// A page of a channel's history.
pub(super) struct MessagePage {
    pub(super) messages: Vec<DiscordMessage>,
    /// Id of the message that the next page starts after, if there may be a next page.
    pub(super) next: Option<u64>,
}

impl DiscordAccountState {
    pub(super) fn new(client: DiscordClient) -> Self {
        Self {
            client,
            me: OnceLock::new(),
            guilds: GuildCache::default(),
            deferred: Deferred::default(),
            pacer: Pacer::default(),
            holds: Pacer::default(),
            locks: KeyedLocks::default(),
            newest: AtomicU64::new(0),
        }
    }

    /// Returns the bot's identity. Asks Discord if no session has reported it yet: an interrupted reply is resumed
    /// before the gateway is connected.
    pub(super) async fn me(&self) -> Result<&DiscordIdentity, DiscordError> {
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
        // Never overwritten: a token always belongs to the same bot.
        Ok(self.me.get_or_init(|| DiscordIdentity { user: bot.id, application: id, name: bot.username }))
    }

    /// Calls the API for a channel. Fails if the route is currently rate-limited.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        route: ApiRoute,
        verb: Method,
        path: &[&str],
        body: &Value,
    ) -> Result<T, DiscordError> {
        let channel = path.get(1).copied().unwrap_or_default();
        self.check_rate_limit(&[route], channel)?;
        let effect = CallEffect::from_method(&verb);
        let request = self.client.request(verb, path);
        let request = match body {
            Value::Null => request.header("content-length", "0"),
            _ => request.json(body),
        };
        self.record_rate_limits(route, channel, self.client.send(effect, request).await)
    }

    /// Records the rate limits contained in a response.
    pub(super) fn record_rate_limits<T>(
        &self,
        route: ApiRoute,
        channel: &str,
        response: Result<DiscordResponse<T>, DiscordError>,
    ) -> Result<T, DiscordError> {
        match response {
            Ok(response) => {
                if let Some(wait) = response.full {
                    self.holds.hold(&(route, channel.to_owned()), wait);
                }
                Ok(response.body)
            }
            Err(error) => {
                match &error {
                    CallError::WaitForAll(after) => self.holds.hold(&(ApiRoute::All, String::new()), *after),
                    CallError::Wait(after) => self.holds.hold(&(route, channel.to_owned()), *after),
                    _ => {}
                }
                Err(error)
            }
        }
    }

    /// Fails if one of these routes of a channel is currently rate-limited.
    pub(super) fn check_rate_limit(&self, routes: &[ApiRoute], channel: &str) -> Result<(), DiscordError> {
        if let Some(left) = self.holds.held(&(ApiRoute::All, String::new())) {
            return Err(CallError::WaitForAll(left));
        }
        let held = routes.iter().filter_map(|route| self.holds.held(&(*route, channel.to_owned()))).max();
        held.map_or(Ok(()), |left| Err(CallError::Wait(left)))
    }

    /// Reads the messages in a channel that are newer than `after`, oldest first, at most `max_pages` pages of a
    /// hundred messages.
    pub(super) async fn history(
        &self,
        channel: &str,
        mut after: u64,
        max_pages: usize,
    ) -> Result<Vec<DiscordMessage>, DiscordError> {
        let mut found = Vec::new();
        for _ in 0..max_pages {
            let page = self.history_page(channel, after).await?;
            found.extend(page.messages);
            let Some(next) = page.next else { break };
            after = next;
        }
        Ok(found)
    }

    /// Reads at most a hundred messages after `after` in a channel, oldest first.
    pub(super) async fn history_page(&self, channel: &str, after: u64) -> Result<MessagePage, DiscordError> {
        self.check_rate_limit(&[ApiRoute::Read], channel)?;
        let from = after.to_string();
        let path = ["channels", channel, "messages"];
        let response = self.client.get(&path, &[("after", from.as_str()), ("limit", PAGE)]).await;
        let mut messages: Vec<DiscordMessage> = self.record_rate_limits(ApiRoute::Read, channel, response)?;
        let id = |message: &DiscordMessage| message.id.parse::<u64>().ok();
        messages.sort_by_key(|message| id(message).unwrap_or(u64::MAX));
        let next = messages.iter().filter_map(id).max().filter(|_| messages.len().to_string() == PAGE);
        Ok(MessagePage { messages, next })
    }

    /// Reads at most a hundred messages before a given one in a channel, oldest first.
    pub(super) async fn history_before(
        &self,
        channel: &str,
        before: &str,
    ) -> Result<Vec<DiscordMessage>, DiscordError> {
        self.check_rate_limit(&[ApiRoute::Read], channel)?;
        let path = ["channels", channel, "messages"];
        let response = self.client.get(&path, &[("before", before), ("limit", PAGE)]).await;
        let response: Vec<Value> = self.record_rate_limits(ApiRoute::Read, channel, response)?;
        let mut messages: Vec<DiscordMessage> =
            response.into_iter().filter_map(|message| serde_json::from_value(message).ok()).collect();
        messages.sort_by_key(|message| message.id.parse::<u64>().unwrap_or(u64::MAX));
        Ok(messages)
    }

    /// Records an id that was seen.
    pub(super) fn record_seen(&self, id: &str) {
        if let Ok(id) = id.parse() {
            self.newest.fetch_max(id, Ordering::Relaxed);
        }
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }
}
