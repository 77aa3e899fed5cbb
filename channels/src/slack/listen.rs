//! Receives events by Socket Mode: one connection, and for a moment two.
//!
//! An envelope is acknowledged only once its content is kept; one that is not comes again. Slack renews its connections
//! every few hours and announces it: the next one is opened first, then the old is left, after the pending envelopes
//! are acknowledged on it.

use super::{
    SlackChannel, SlackEventMode,
    event_handler::{SlackIntakeError, Source},
    failure::{SlackError, fatal, socket_mode_disabled},
    wire::SocketModeFrame,
};
use crate::{
    BoxFuture, ChannelError, EventSink, HealthState,
    socket::{self, Keepalive, Socket, SocketError},
    supervise::{ConnectionEnd, supervise},
    transport::{CallError, CatchUp},
};
use futures_util::{FutureExt, StreamExt, future::OptionFuture, stream::FuturesUnordered};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Ping interval of the socket, and the silence after which it is dead. Slack pings about every ten
/// seconds; so do we.
const KEEPALIVE: Keepalive = Keepalive { ping: Duration::from_secs(10), idle: Duration::from_secs(35) };
/// How long the first frame may take.
const HELLO: Duration = Duration::from_secs(15);
/// Maximum number of events handled at once; Slack wants each acknowledged within three seconds.
const MAX_CONCURRENT_EVENTS: usize = 64;
/// How long the old connection waits for its pending acknowledgements.
const FAREWELL: Duration = Duration::from_secs(3);
/// A connection that is to be renewed sooner than this after the last renewal gets a pause.
const OFTEN: Duration = Duration::from_secs(10);
/// How long Slack is left alone when it has too many connections of this app.
const CROWDED: Duration = Duration::from_secs(30);
/// Delay before refused events are looked for in the history.
const CATCHUP_DELAY: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct ConnectionsOpenResponse {
    url: String,
}

impl SlackChannel {
    pub(super) async fn receive(
        &self,
        sink: &dyn EventSink,
        stop: CancellationToken,
    ) -> Result<(), ChannelError> {
        supervise(&self.handler.health, &stop, || self.session(sink, &stop)).await
    }

    async fn session(&self, sink: &dyn EventSink, stop: &CancellationToken) -> ConnectionEnd {
        let opened = async {
            self.learn_identity().await?;
            match self.config.delivery {
                SlackEventMode::Socket { .. } => self.open().await.map(Some),
                SlackEventMode::Http { .. } => Ok(None),
            }
        };
        let opened = tokio::select! {
            opened = opened => opened,
            () = stop.cancelled() => return ConnectionEnd::Renew,
        };
        match opened {
            Err(ended) => ended,
            Ok(Some(socket)) => SlackSession::new(self, sink, socket).run(stop).await,
            Ok(None) => {
                self.handler.health.ready();
                stop.run_until_cancelled(self.catch_up_by_itself(sink)).await;
                ConnectionEnd::Renew
            }
        }
    }

    /// Reads missed messages, where no connection has to be served beside it. Never ends.
    async fn catch_up_by_itself(&self, sink: &dyn EventSink) {
        let (mut catch_up, reads) = (CatchUp::default(), &self.handler.state.client.transport.reads);
        catch_up.begin(Duration::ZERO, reads, |round| self.catch_up(round, sink));
        loop {
            if !catch_up.next().await {
                catch_up.begin(CATCHUP_DELAY, reads, |round| self.catch_up(round, sink));
            }
        }
    }

    /// Learns who the bot is.
    async fn learn_identity(&self) -> Result<(), ConnectionEnd> {
        let known = self.handler.state.me.get().is_some();
        let me = self.handler.state.me().await.map_err(ended)?;
        if let Some(own) = self.config.bot_user_id.as_ref().filter(|own| **own != me.user && !known) {
            tracing::warn!(configured = own, slack = me.user, "ignored `bot_user_id`: Slack says another");
        }
        tracing::info!(
            account = &*self.handler.account,
            user = me.user,
            team = me.team,
            "connected to Slack"
        );
        Ok(())
    }

    /// Opens a connection, up to Slack's first word.
    pub(super) async fn open(&self) -> Result<Socket, ConnectionEnd> {
        let ConnectionsOpenResponse { url } = self.handler.state.client.open().await.map_err(ended)?;
        let mut socket = Socket::connect(&url, KEEPALIVE).await.map_err(lost)?;
        let hello = async {
            loop {
                match read(socket.next().await.map_err(lost)?)? {
                    Some(frame) if frame.kind == "hello" => return Ok(()),
                    Some(frame) if frame.kind == "disconnect" => return Err(told_to_go(&frame)),
                    _ => {}
                }
            }
        };
        timeout(HELLO, hello)
            .await
            .map_err(|_| ConnectionEnd::Lost("Slack does not say hello".to_owned()))??;
        Ok(socket)
    }
}

/// An open connection and the envelopes in progress.
struct SlackSession<'a> {
    slack: &'a SlackChannel,
    sink: &'a dyn EventSink,
    socket: Socket,
    /// Envelopes that are worked on; each gives its id once it may be acknowledged. One that has to ask Slack
    /// for something keeps no other waiting.
    kept: FuturesUnordered<BoxFuture<'a, Option<String>>>,
    next: Option<BoxFuture<'a, Result<Socket, ConnectionEnd>>>,
    renewed: Option<Instant>,
    catch_up: CatchUp<'a>,
    /// Whether the history is still to be read for missed messages.
    behind: bool,
    broken: bool,
}

impl<'a> SlackSession<'a> {
    fn new(slack: &'a SlackChannel, sink: &'a dyn EventSink, socket: Socket) -> Self {
        slack.handler.health.ready();
        let mut session = Self {
            slack,
            sink,
            socket,
            kept: FuturesUnordered::new(),
            next: None,
            renewed: None,
            catch_up: CatchUp::default(),
            behind: true,
            broken: false,
        };
        session.begin_catch_up(Duration::ZERO);
        session
    }

    async fn run(mut self, stop: &CancellationToken) -> ConnectionEnd {
        let ended = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break ConnectionEnd::Renew,
                Some(kept) = self.kept.next() => self.acknowledge(kept).await,
                Some(opened) = OptionFuture::from(self.next.as_mut()) => match opened {
                    Ok(socket) => self.change(socket).await,
                    Err(ended) => break ended,
                },
                frame = self.socket.next(), if !self.broken && self.kept.len() < MAX_CONCURRENT_EVENTS => {
                    if let Err(ended) = self.on_frame(frame) {
                        break ended;
                    }
                }
                complete = self.catch_up.next() => {
                    self.behind = !complete;
                    if !complete {
                        self.begin_catch_up(CATCHUP_DELAY);
                    }
                }
            }
        };
        if !self.behind {
            self.slack.alive(self.socket.last_received_at());
        }
        if !self.broken {
            self.acknowledge_pending().await;
            self.socket.close().await;
        }
        ended
    }

    /// Takes a frame; an error ends the session.
    fn on_frame(&mut self, frame: Result<socket::SocketFrame, SocketError>) -> Result<(), ConnectionEnd> {
        let frame = match frame.map_err(lost).and_then(read) {
            Ok(frame) => frame,
            // The next connection is on its way already.
            Err(_) if self.next.is_some() => {
                self.broken = true;
                return Ok(());
            }
            Err(ended) => return Err(ended),
        };
        let Some(frame) = frame else { return Ok(()) };
        if frame.kind == "disconnect" {
            return self.leave(&frame);
        }
        if let Some(id) = frame.envelope_id {
            self.slack.handler.health.ready();
            self.kept.push(keep(self.slack, self.sink, id, &frame.kind, frame.payload));
        }
        Ok(())
    }

    /// Slack wants the connection to end.
    fn leave(&mut self, frame: &SocketModeFrame) -> Result<(), ConnectionEnd> {
        match frame.reason.as_deref() {
            Some("warning" | "refresh_requested") | None => {}
            Some(_) => return Err(told_to_go(frame)),
        }
        if self.renewed.is_some_and(|at| at.elapsed() < OFTEN) {
            return Err(ConnectionEnd::Renew);
        }
        if self.next.is_none() {
            tracing::debug!(reason = frame.reason, "renewing connection");
            self.next = Some(Box::pin(self.slack.open()));
        }
        Ok(())
    }

    /// Goes over to the next connection.
    async fn change(&mut self, socket: Socket) {
        self.next = None;
        if !self.broken {
            self.acknowledge_pending().await;
        }
        let old = std::mem::replace(&mut self.socket, socket);
        if !self.broken {
            old.close().await;
        }
        self.broken = false;
        self.renewed = Some(Instant::now());
        // Envelopes in progress belonged to the old connection: they come again on this one.
        self.kept = FuturesUnordered::new();
    }

    /// Acknowledges envelopes in progress, as far as that is soon done.
    async fn acknowledge_pending(&mut self) {
        let all = async {
            while let Some(kept) = self.kept.next().await {
                if let Some(id) = kept
                    && self.socket.send_text(acknowledgement(&id)).await.is_err()
                {
                    return;
                }
            }
        };
        // Unacknowledged envelopes come again.
        let _ = timeout(FAREWELL, all).await;
    }

    async fn acknowledge(&mut self, kept: Option<String>) {
        match kept {
            // A connection that is gone is noticed by reading.
            Some(id) if !self.broken => {
                self.socket.send_text(acknowledgement(&id)).await.ok();
            }
            // A refused event is read from the history after a while.
            None => {
                self.behind = true;
                self.begin_catch_up(CATCHUP_DELAY);
            }
            Some(_) => {}
        }
    }

    fn begin_catch_up(&mut self, delay: Duration) {
        let (slack, sink) = (self.slack, self.sink);
        let reads = &slack.handler.state.client.transport.reads;
        self.catch_up.begin(delay, reads, |round| slack.catch_up(round, sink));
    }
}

fn acknowledgement(id: &str) -> String {
    json!({"envelope_id": id}).to_string()
}

/// Keeps the content of an envelope and returns its id if it may be acknowledged. One of an unknown kind may.
fn keep<'a>(
    slack: &'a SlackChannel,
    sink: &'a dyn EventSink,
    id: String,
    kind: &str,
    payload: Value,
) -> BoxFuture<'a, Option<String>> {
    let source = match kind {
        "events_api" => Source::Event,
        "interactive" => Source::Action,
        "slash_commands" => Source::Command,
        _ => return Box::pin(std::future::ready(Some(id))),
    };
    let keep = async move {
        match slack.handler.keep(source, payload, sink).await {
            Ok(()) => Some(id),
            Err(error) => {
                not_kept(slack, &error);
                None
            }
        }
    };
    keep.boxed()
}

fn not_kept(slack: &SlackChannel, error: &SlackIntakeError) {
    tracing::warn!(account = &*slack.handler.account, %error, "failed to accept event; Slack sends it again");
    slack.handler.health.failed(HealthState::Degraded, error.to_string());
}

/// Reads a frame; `None` for one that says nothing.
fn read(frame: socket::SocketFrame) -> Result<Option<SocketModeFrame>, ConnectionEnd> {
    match frame {
        socket::SocketFrame::Text(text) => {
            let frame = crate::lenient::from_bytes(text.as_bytes());
            if frame.is_err() {
                tracing::warn!(bytes = text.len(), "dropped frame: decode error");
            }
            Ok(frame.ok())
        }
        socket::SocketFrame::Binary(_) => Ok(None),
        socket::SocketFrame::Close(_) => Err(ConnectionEnd::Lost("Slack closed the connection".to_owned())),
    }
}

fn told_to_go(frame: &SocketModeFrame) -> ConnectionEnd {
    match frame.reason.as_deref().unwrap_or_default() {
        "link_disabled" => ConnectionEnd::Fatal(socket_mode_disabled()),
        "too_many_websockets" => {
            ConnectionEnd::Later("too many connections of this app are open".to_owned(), CROWDED)
        }
        "warning" | "refresh_requested" => ConnectionEnd::Renew,
        other => ConnectionEnd::Lost(format!("Slack closes the connection: {other}")),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn lost(error: SocketError) -> ConnectionEnd {
    ConnectionEnd::Lost(error.to_string())
}

fn ended(error: SlackError) -> ConnectionEnd {
    if let Some(error) = fatal(&error) {
        return ConnectionEnd::Fatal(error);
    }
    match error {
        CallError::Wait(after) => {
            ConnectionEnd::Later("Slack has too many calls of this app".to_owned(), after)
        }
        other => ConnectionEnd::Lost(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
