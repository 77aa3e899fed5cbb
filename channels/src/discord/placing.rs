//! Stores messages whose channel could not be looked up on arrival, as soon as Discord answers again.

use super::{
    account_state::ApiRoute,
    catchup::MAX_ANSWER_AGE,
    event_handler::{DiscordEventHandler, DiscordIntakeError},
    unplaced::{UnplacedMessage, Waiting},
    wire::{DiscordMessage, id_time},
};
use crate::{EventSink, clock::now, recovery::Backoff, transport::CallError};
use futures_util::{StreamExt, stream};
use pudu_net::reqwest::Method;
use serde_json::Value;
use std::time::Duration;

/// Delay before the channels of waiting messages are looked up again.
const ASK_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of channels looked up concurrently.
const CHANNELS_AT_ONCE: usize = 8;

impl DiscordEventHandler {
    /// Stores the waiting messages as soon as their channels can be looked up. Never returns.
    pub(super) async fn place_later(&self, sink: &dyn EventSink) {
        let mut backoff = Backoff::new();
        loop {
            if self.unplaced.is_empty() {
                self.unplaced.wait_until_nonempty().await;
                backoff = Backoff::new();
            }
            backoff.pause(&self.state.client.transport.reads, ASK_INTERVAL).await;
            backoff.start_try();
            let channels = stream::iter(self.unplaced.by_channel().into_values());
            channels.for_each_concurrent(CHANNELS_AT_ONCE, |waiting| self.place_all(waiting, sink)).await;
        }
    }

    /// Stores the waiting messages of one channel, in order.
    async fn place_all(&self, waiting: Vec<Waiting>, sink: &dyn EventSink) {
        for (location, received) in waiting {
            let UnplacedMessage { id, channel, .. } = &location;
            if id_time(id).is_none_or(|at| at < now() - MAX_ANSWER_AGE) {
                tracing::warn!(
                    message = id,
                    channel,
                    "dropped message: its channel could not be looked up in time"
                );
            } else if let Err(error) = self.place_one(&location, received, sink).await {
                tracing::debug!(message = id, channel, %error, "message still waits for its channel to be looked up");
                return;
            }
            self.unplaced.remove(id);
        }
    }

    /// Stores a waiting message. Its content is fetched again if a previous process received it.
    async fn place_one(
        &self,
        location: &UnplacedMessage,
        received: Option<DiscordMessage>,
        sink: &dyn EventSink,
    ) -> Result<(), DiscordIntakeError> {
        let UnplacedMessage { id, channel, guild } = location;
        let me = self.state.me().await?;
        let location =
            self.channel_by_id(channel, guild.as_deref(), Box::pin(self.fetch_channel(channel))).await?;
        let message = match received {
            Some(message) => message,
            None => {
                let path = ["channels", channel, "messages", id];
                match self.state.call(ApiRoute::Read, Method::GET, &path, &Value::Null).await {
                    Ok(message) => DiscordMessage { guild_id: guild.clone(), ..message },
                    Err(CallError::Refused(why) | CallError::Gone(why)) => {
                        tracing::warn!(
                            message = id,
                            channel,
                            why,
                            "dropped message: it can no longer be read"
                        );
                        return Ok(());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if !self.unplaced.contains(id) {
            return Ok(());
        }
        self.keep(self.decoder(me).message(&message, &location), sink).await
    }
}
