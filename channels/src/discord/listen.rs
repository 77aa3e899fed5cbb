//! Receives events: one connection to the gateway at a time.
//!
//! Events are not acknowledged one by one. Instead, a resumed session sends all events after a given sequence number:
//! that of the last stored event. The number is stored together with its event, so that the next process resumes there.
//! If a session cannot be resumed, the history is read.

use super::{
    DiscordChannel,
    account_state::{ApiRoute, DiscordIdentity},
    answers::MAX_CONCURRENT_RESPONSES,
    event_handler::{DiscordIntakeError, EventResponse},
    facts::{DOCTOR, DiscordError},
    gateway::{Disconnect, DispatchEvent, GatewayConnection, GatewayConnector, GatewayEvent},
    session::{GatewaySession, PositionedSink},
    wire::{GatewayInfo, Ready, SessionStartLimit},
};
use crate::{
    ChannelError, EventSink, HealthState, ReplyStoreError,
    supervise::ConnectionEnd,
    supervise::supervise,
    transport::{CallError, CatchUp},
};
use serde_json::Value;
use std::{
    mem,
    sync::{Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long to wait for the servers' descriptions before the history is read without them.
const SERVERS: Duration = Duration::from_secs(5);
/// Delay before the history is read again if some missed messages could not be read or stored.
const CATCHUP_DELAY: Duration = Duration::from_secs(30);

impl DiscordChannel {
    pub(super) async fn receive(
        &self,
        sink: &dyn EventSink,
        stop: CancellationToken,
    ) -> Result<(), ChannelError> {
        // `None` while an open connection uses it.
        let stored: Mutex<Option<GatewayConnector>> = Mutex::new(None);
        let take = || stored.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (todo, todos) = mpsc::channel(MAX_CONCURRENT_RESPONSES);
        let connect = || async {
            let taken_up = match take() {
                Some(gateway) => Ok(gateway),
                None => self.restore_connector(sink).await,
            };
            let mut gateway = match taken_up {
                Ok(gateway) => gateway,
                Err(error) => return ConnectionEnd::Lost(error.to_string()),
            };
            let ended = self.session(&mut gateway, sink, &todo, &stop).await;
            *stored.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway);
            ended
        };
        tokio::select! {
            result = supervise(&self.handler.health, &stop, connect) => result,
            // Never ends first, because `todo` is a sender of event responses.
            () = self.handle_responses(todos) => Ok(()),
            () = self.handler.place_later(sink) => Ok(()),
        }
    }

    /// Creates the connector. Restores the bot's stored session, even one from another process.
    async fn restore_connector(&self, sink: &dyn EventSink) -> Result<GatewayConnector, ReplyStoreError> {
        let mut gateway = GatewayConnector::new(&self.handler.state.client.token);
        let stored = sink.position(&self.handler.account).await?;
        if let Some(mut session) = stored.as_ref().and_then(GatewaySession::read) {
            self.handler.unplaced.restore(mem::take(&mut session.unplaced));
            self.was_heard(session.received_until);
            self.needs_catchup.store(session.needs_catchup, Ordering::Relaxed);
            gateway.restore(session);
        }
        Ok(gateway)
    }

    async fn session(
        &self,
        gateway: &mut GatewayConnector,
        sink: &dyn EventSink,
        todo: &mpsc::Sender<EventResponse>,
        stop: &CancellationToken,
    ) -> ConnectionEnd {
        let url = match gateway.address() {
            Some(url) => Ok(url),
            None => tokio::select! {
                url = self.address(gateway.resumes()) => url,
                () = stop.cancelled() => return ConnectionEnd::Renew,
            },
        };
        let link = match url {
            Ok(url) => gateway.connect(&url).await,
            Err(ended) => Err(ended),
        };
        let link = match link {
            Ok(link) => link,
            Err(ended) => return ended,
        };
        let saved = gateway.session().cloned();
        let talk = ActiveSession {
            discord: self,
            sink,
            gateway,
            todo,
            catch_up: CatchUp::default(),
            flows: false,
            saved,
        };
        talk.run(link, stop).await
    }

    /// Fetches the gateway's URL. This also checks the token, because Discord counts failed session starts, too.
    async fn address(&self, resumes: bool) -> Result<String, ConnectionEnd> {
        let response = self.handler.state.client.get::<GatewayInfo>(&["gateway", "bot"], &[]).await;
        let response =
            self.handler.state.record_rate_limits(ApiRoute::Read, "gateway", response).map_err(ended)?;
        match response.session_start_limit {
            Some(SessionStartLimit { remaining: 0, reset_after, .. }) if !resumes => {
                Err(ConnectionEnd::Later(
                    "the bot has connected too often today".to_owned(),
                    Duration::from_millis(reset_after),
                ))
            }
            _ => Ok(response.url),
        }
    }
}

/// One connection and the work that runs concurrently.
struct ActiveSession<'a> {
    discord: &'a DiscordChannel,
    sink: &'a dyn EventSink,
    gateway: &'a mut GatewayConnector,
    /// Queue for work that this loop does not wait for.
    todo: &'a mpsc::Sender<EventResponse>,
    catch_up: CatchUp<'a>,
    /// Whether events flow: the session began, or the resumed session sent all missed events.
    flows: bool,
    /// The session as this connection found it, or last stored it without an event.
    saved: Option<GatewaySession>,
}

impl ActiveSession<'_> {
    async fn run(mut self, mut link: GatewayConnection, stop: &CancellationToken) -> ConnectionEnd {
        loop {
            let received = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    link.leave();
                    self.save_news().await;
                    return ConnectionEnd::Renew;
                }
                received = link.next() => received,
                complete = self.catch_up.next() => {
                    if complete {
                        self.save().await;
                    } else {
                        self.begin_catch_up(CATCHUP_DELAY);
                    }
                    continue;
                }
            };
            let handled = match received {
                Ok(GatewayEvent::Event(event)) => self.take(event).await,
                Ok(GatewayEvent::Nothing) => {
                    self.alive();
                    self.save_news().await;
                    Ok(())
                }
                Err(disconnect) => Err(disconnect),
            };
            if let Err(disconnect) = handled {
                self.gateway.disconnected(&disconnect);
                return disconnect.ended;
            }
        }
    }

    /// Handles an event. An error ends the connection.
    async fn take(&mut self, event: DispatchEvent) -> Result<(), Disconnect> {
        let DispatchEvent { seq, kind, data } = event;
        let todo = match kind.as_str() {
            "READY" => {
                self.ready(data, seq).await?;
                EventResponse::Register
            }
            "RESUMED" => {
                self.flows = true;
                self.discord.handler.health.ready();
                if self.discord.is_behind() {
                    self.begin_catch_up(Duration::ZERO);
                }
                // Register again: this process may have other commands than the process that began the session.
                EventResponse::Register
            }
            _ => match self.on_event(&kind, data, seq).await {
                Ok(todo) => todo,
                Err(error) => return Err(self.not_kept(&error)),
            },
        };
        self.gateway.kept(seq);
        self.alive();
        self.see_to(todo);
        Ok(())
    }

    /// Stores the content of an event, together with the position after this event.
    async fn on_event(
        &mut self,
        kind: &str,
        data: Value,
        seq: u64,
    ) -> Result<EventResponse, DiscordIntakeError> {
        let handler = &self.discord.handler;
        let Some(session) = self.session(seq) else { return handler.on_event(kind, data, self.sink).await };
        // The session belongs to this bot: Discord has accepted it.
        handler.state.me.get_or_init(|| session.me.clone());
        // All deletions of a bulk event are stored before the position moves past it.
        if kind == "MESSAGE_DELETE_BULK" {
            return handler.on_event(kind, data, self.sink).await;
        }
        handler.on_event(kind, data, &PositionedSink { sink: self.sink, session }).await
    }

    /// Returns the session as it will be once the event with this sequence number is stored.
    fn session(&self, seq: u64) -> Option<GatewaySession> {
        let session = self.gateway.session()?.clone();
        let (needs_catchup, received_until) =
            (self.discord.is_behind(), self.discord.received_until.load(Ordering::Relaxed));
        let unplaced = self.discord.handler.unplaced.locations();
        Some(GatewaySession { seq: seq.max(session.seq), needs_catchup, received_until, unplaced, ..session })
    }

    /// Stores the session if it has changed since it was last stored here.
    async fn save_news(&mut self) {
        let news = |session: &GatewaySession| (session.seq, session.unplaced.clone());
        if self.session(0).as_ref().map(news) != self.saved.as_ref().map(news) {
            self.save().await;
        }
    }

    /// Stores the session. If that fails, more events will be sent again, and recognised by their keys.
    async fn save(&mut self) -> bool {
        let Some(session) = self.session(0) else { return true };
        let Some(position) = session.position() else { return false };
        let saved = self.sink.save_position(&self.discord.handler.account, position).await;
        if let Err(error) = &saved {
            tracing::warn!(%error, "failed to store the session's position");
            return false;
        }
        self.saved = Some(session);
        true
    }

    fn alive(&self) {
        if self.flows {
            self.discord.alive();
        }
    }

    /// Returns an end of the connection that makes the session resume before this event.
    fn not_kept(&self, error: &DiscordIntakeError) -> Disconnect {
        tracing::warn!(account = self.discord.handler.account, %error, "failed to accept event; Discord sends it again");
        self.discord.handler.health.failed(HealthState::Degraded, error.to_string());
        Disconnect::lost(&error.to_string())
    }

    async fn ready(&mut self, data: Value, seq: u64) -> Result<(), Disconnect> {
        let ready: Ready = serde_json::from_value(data)
            .map_err(|_| Disconnect::lost("Discord did not report the bot's identity"))?;
        let state = &self.discord.handler.state;
        let application = ready.application.clone().map(|application| application.id);
        let application = application.filter(|id| !id.is_empty()).unwrap_or_else(|| ready.user.id.clone());
        let me =
            DiscordIdentity { user: ready.user.id.clone(), application, name: ready.user.username.clone() };
        tracing::info!(account = self.discord.handler.account, bot = me.name, "connected to Discord");
        // Never overwritten: a token always belongs to the same bot.
        state.me.set(me.clone()).ok();
        state.guilds.expect(ready.guilds.len());
        self.gateway.began(&ready, me, seq);
        self.discord.falls_behind();
        // Before any event of the session is stored: otherwise the next process would resume the previous session.
        if !self.save().await {
            return Err(Disconnect::lost("the session could not be stored"));
        }
        self.discord.handler.health.ready();
        self.flows = true;
        self.begin_catch_up(Duration::ZERO);
        Ok(())
    }

    /// Reads missed messages from the history, after a delay.
    fn begin_catch_up(&mut self, after: Duration) {
        let (discord, sink) = (self.discord, self.sink);
        let reads = &discord.handler.state.client.transport.reads;
        self.catch_up.begin(after, reads, |round| async move {
            // If a server's description is late, the server is searched with the available data.
            timeout(SERVERS, discord.handler.state.guilds.wait_until_complete()).await.ok();
            discord.catch_up(round, sink).await
        });
    }

    fn see_to(&self, todo: EventResponse) {
        if matches!(todo, EventResponse::Nothing) {
            return;
        }
        if let Err(error) = self.todo.try_send(todo)
            && let EventResponse::Command { token, .. } = error.into_inner()
        {
            // The reply will be an ordinary message.
            self.discord.handler.state.deferred.taken(&token, false);
        }
    }
}

fn ended(error: DiscordError) -> ConnectionEnd {
    match error {
        CallError::Auth(why) => {
            ConnectionEnd::Fatal(ChannelError::Auth(format!("{why}: {}", DOCTOR.credentials_help)))
        }
        CallError::Wait(after) | CallError::WaitForAll(after) => {
            ConnectionEnd::Later("Discord limits the rate of this bot's calls".to_owned(), after)
        }
        other => ConnectionEnd::Lost(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
