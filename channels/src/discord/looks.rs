//! Looks up the places of messages that Discord has not described.

use super::{
    account_state::ApiRoute,
    event_handler::DiscordEventHandler,
    failure::DiscordError,
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

/// How long events wait for a call that looks something up, and after how long it is tried again.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The key under which every look-up is held back, because none has an answer.
const ALL_LOOKS: &str = "*";
/// Maximum number of servers that are queried.
const GUILDS: usize = 50;

impl DiscordEventHandler {
    pub(super) async fn place(&self, message: &DiscordMessage) -> Result<CachedChannel, DiscordError> {
        self.place_of(&message.channel_id, message.guild_id.as_deref()).await
    }

    pub(super) fn unknown_place(&self, message: &DiscordMessage, error: &DiscordError) -> CachedChannel {
        CachedChannel::in_guild(message.guild_id.as_deref(), error)
    }

    /// Returns the place of a channel, for an event that waits for it.
    pub(super) async fn place_of(
        &self,
        channel: &str,
        guild: Option<&str>,
    ) -> Result<CachedChannel, DiscordError> {
        let look = Box::pin(with_timeout(LOOK_TIMEOUT, self.fetch_channel(channel)));
        self.place_by(channel, guild, self.look_up_with_backoff(channel, look)).await
    }

    /// Returns the place of a channel. An unknown channel, which may be a thread, is asked for by `look`. An
    /// unknown server is asked for as well, since a resumed session does not describe it.
    pub(super) async fn place_by(
        &self,
        channel: &str,
        guild: Option<&str>,
        look: impl Future<Output = Result<CachedChannel, DiscordError>>,
    ) -> Result<CachedChannel, DiscordError> {
        let Some(guild) = guild else { return Ok(CachedChannel::default()) };
        let places = &self.state.places;
        if !places.knows(guild) {
            // If this fails, the channel alone is looked up.
            self.look_up_with_backoff(guild, Box::pin(self.learn_guild(guild, LOOK_TIMEOUT))).await.ok();
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

    /// Looks up a channel or a server for which events wait: not again and again in vain.
    async fn look_up_with_backoff<T>(
        &self,
        what: &str,
        look: impl Future<Output = Result<T, DiscordError>>,
    ) -> Result<T, DiscordError> {
        let (what, all) = (what.to_owned(), ALL_LOOKS.to_owned());
        if [&what, &all].into_iter().any(|what| self.failed_looks.held(what).is_some()) {
            return Err(CallError::Unconnected("it could not be asked for a moment ago".to_owned()));
        }
        let begun = Instant::now();
        let told = look.await;
        if told.as_ref().is_err_and(|error| !matches!(error, CallError::Refused(_) | CallError::Gone(_))) {
            // One that is refused at once is that one's trouble; where nothing answers, each would cost events that
            // time.
            let hangs = begun.elapsed() >= LOOK_TIMEOUT;
            self.failed_looks.hold(if hangs { &all } else { &what }, LOOK_AGAIN);
        }
        told
    }

    /// Reads a server's channels, roles and threads, which it describes when a session begins. Parts that arrive in
    /// time are kept.
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
        let told = Guild { id: guild.to_owned(), channels, threads, roles };
        state.places.learn(told, me, failed.is_none());
        failed.map_or(Ok(()), Err)
    }

    /// Queries the servers that have not described themselves.
    pub(super) async fn learn_all(&self) -> Result<(), DiscordError> {
        #[derive(Deserialize)]
        struct Joined {
            id: String,
        }
        let path = ["users", "@me", "guilds"];
        let joined: Vec<Joined> = self.state.call(ApiRoute::Read, Method::GET, &path, &Value::Null).await?;
        for Joined { id } in joined.iter().take(GUILDS).filter(|one| !self.state.places.knows(&one.id)) {
            match Box::pin(self.learn_guild(id, CALL_TIMEOUT)).await {
                Err(CallError::Refused(why) | CallError::Gone(why)) => {
                    tracing::debug!(why, "failed to look up server");
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// Looks up a channel.
    pub(super) async fn fetch_channel(&self, channel: &str) -> Result<CachedChannel, DiscordError> {
        let path = ["channels", channel];
        let told = self.state.call::<ChannelInfo>(ApiRoute::Read, Method::GET, &path, &Value::Null).await?;
        Ok(self.state.places.channel(told))
    }
}

/// Waits for an answer, but no longer than this.
async fn with_timeout<T>(
    time: Duration,
    call: impl Future<Output = Result<T, DiscordError>>,
) -> Result<T, DiscordError> {
    timeout(time, call).await.unwrap_or_else(|_| Err(CallError::Unknown("no answer in time".to_owned())))
}
