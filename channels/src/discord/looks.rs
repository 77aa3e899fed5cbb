//! Looks up channels and servers that are missing from the cache.

use super::{
    account_state::ApiRoute,
    event_handler::DiscordEventHandler,
    facts::DiscordError,
    guild_cache::CachedChannel,
    wire::{ChannelInfo, DiscordMessage, Guild},
};
use crate::{recovery::CALL_TIMEOUT, transport::CallError};
use pudu_net::reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tokio::{
    join,
    time::{Instant, timeout},
};

/// How long events wait for a look-up, and the delay before a failed look-up is tried again.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
const LOOKUP_BACKOFF: Duration = Duration::from_secs(5);
/// Key that holds back every look-up after a timeout.
const ALL_LOOKUPS: &str = "*";
/// Maximum number of servers whose descriptions are fetched.
const MAX_GUILDS: usize = 50;

impl DiscordEventHandler {
    pub(super) async fn channel(&self, message: &DiscordMessage) -> Result<CachedChannel, DiscordError> {
        self.channel_of_event(&message.channel_id, message.guild_id.as_deref()).await
    }

    pub(super) fn unknown_place(&self, message: &DiscordMessage, error: &DiscordError) -> CachedChannel {
        CachedChannel::in_guild(message.guild_id.as_deref(), error)
    }

    /// Returns the description of a channel, for an event that waits for it.
    pub(super) async fn channel_of_event(
        &self,
        channel: &str,
        guild: Option<&str>,
    ) -> Result<CachedChannel, DiscordError> {
        let look = Box::pin(with_timeout(LOOKUP_TIMEOUT, self.fetch_channel(channel)));
        self.channel_by_id(channel, guild, self.look_up_with_backoff(channel, look)).await
    }

    /// Returns the description of a channel. An unknown channel, which may be a thread, is fetched by `look`. An
    /// unknown server is fetched as well, because a resumed session does not describe it.
    pub(super) async fn channel_by_id(
        &self,
        channel: &str,
        guild: Option<&str>,
        look: impl Future<Output = Result<CachedChannel, DiscordError>>,
    ) -> Result<CachedChannel, DiscordError> {
        let Some(guild) = guild else { return Ok(CachedChannel::default()) };
        let places = &self.state.guilds;
        if !places.knows(guild) {
            // If this fails, only the channel is looked up.
            self.look_up_with_backoff(guild, Box::pin(self.learn_guild(guild, LOOKUP_TIMEOUT))).await.ok();
        }
        if let Some(place) = places.get(channel) {
            return Ok(place);
        }
        match look.await {
            Err(error @ (CallError::Refused(_) | CallError::Gone(_))) => {
                Ok(CachedChannel::in_guild(Some(guild), &error))
            }
            place => place,
        }
    }

    /// Looks up a channel or a server that events are waiting for. Fails at once if the last attempt failed a moment
    /// ago.
    async fn look_up_with_backoff<T>(
        &self,
        what: &str,
        look: impl Future<Output = Result<T, DiscordError>>,
    ) -> Result<T, DiscordError> {
        let (what, all) = (what.to_owned(), ALL_LOOKUPS.to_owned());
        if [&what, &all].into_iter().any(|what| self.failed_looks.held(what).is_some()) {
            return Err(CallError::Unconnected("the last attempt failed a moment ago".to_owned()));
        }
        let start = Instant::now();
        let response = look.await;
        if response.as_ref().is_err_and(|error| !matches!(error, CallError::Refused(_) | CallError::Gone(_)))
        {
            // A fast failure affects only this look-up. After a timeout, every further look-up would delay events just
            // as long.
            let timed_out = start.elapsed() >= LOOKUP_TIMEOUT;
            self.failed_looks.hold(if timed_out { &all } else { &what }, LOOKUP_BACKOFF);
        }
        response
    }

    /// Fetches a server's channels, roles and threads, which the gateway sends only when a session begins. Keeps the
    /// parts that arrive in time.
    async fn learn_guild(&self, guild: &str, time: Duration) -> Result<(), DiscordError> {
        #[derive(Default, Deserialize)]
        struct Active {
            #[serde(default)]
            threads: Vec<ChannelInfo>,
        }
        let state = &self.state;
        let none = &Value::Null;
        let me = &state.me().await?.user;
        let (channels, roles, active) = (
            ["guilds", guild, "channels"],
            ["guilds", guild, "roles"],
            ["guilds", guild, "threads", "active"],
        );
        let (channels, roles, active) = join!(
            with_timeout(time, state.call(ApiRoute::Read, Method::GET, &channels, none)),
            with_timeout(time, state.call(ApiRoute::Read, Method::GET, &roles, none)),
            with_timeout(time, state.call::<Active>(ApiRoute::Read, Method::GET, &active, none)),
        );
        let errors = [channels.as_ref().err(), roles.as_ref().err(), active.as_ref().err()];
        let failed = errors.into_iter().flatten().next().cloned();
        let (channels, roles) = (channels.unwrap_or_default(), roles.unwrap_or_default());
        let threads = active.unwrap_or_default().threads;
        let response = Guild { id: guild.to_owned(), channels, threads, roles };
        state.guilds.learn(response, me, failed.is_none());
        failed.map_or(Ok(()), Err)
    }

    /// Fetches the descriptions of the servers that are not known yet.
    pub(super) async fn learn_all(&self) -> Result<(), DiscordError> {
        #[derive(Deserialize)]
        struct Joined {
            id: String,
        }
        let path = ["users", "@me", "guilds"];
        let joined: Vec<Joined> = self.state.call(ApiRoute::Read, Method::GET, &path, &Value::Null).await?;
        for Joined { id } in joined.iter().take(MAX_GUILDS).filter(|one| !self.state.guilds.knows(&one.id)) {
            match Box::pin(self.learn_guild(id, CALL_TIMEOUT)).await {
                Err(CallError::Refused(why) | CallError::Gone(why)) => {
                    tracing::debug!(why, "failed to look up server");
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// Fetches a channel.
    pub(super) async fn fetch_channel(&self, channel: &str) -> Result<CachedChannel, DiscordError> {
        let path = ["channels", channel];
        let response =
            self.state.call::<ChannelInfo>(ApiRoute::Read, Method::GET, &path, &Value::Null).await?;
        Ok(self.state.guilds.channel(response))
    }
}

/// Waits for a response for at most `time`.
async fn with_timeout<T>(
    time: Duration,
    call: impl Future<Output = Result<T, DiscordError>>,
) -> Result<T, DiscordError> {
    timeout(time, call).await.unwrap_or_else(|_| Err(CallError::Unknown("the call timed out".to_owned())))
}
