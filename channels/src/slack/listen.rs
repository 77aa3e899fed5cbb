//! Receives events over Socket Mode. There is one connection, or two during a renewal.
//!
//! An envelope is acknowledged only once its content is stored; otherwise it is redelivered. Slack announces every few
//! hours that a connection has to be renewed: the next one is opened first, then the pending envelopes are acknowledged
//! on the old one, and it is closed.

use super::{
    SlackChannel, SlackEventMode,
    event_handler::{SlackIntakeError, Source},
    facts::{SlackError, fatal, socket_mode_disabled},
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

/// Ping interval of the socket, and how long it may be silent before it counts as dead. Slack also pings about every 10
/// s.
const KEEPALIVE: Keepalive = Keepalive { ping: Duration::from_secs(10), idle: Duration::from_secs(35) };
/// Timeout for the first frame.
const HELLO: Duration = Duration::from_secs(15);
/// Maximum number of events handled concurrently. Slack expects each acknowledgement within three seconds.
const MAX_CONCURRENT_EVENTS: usize = 64;
/// How long the old connection stays open for its pending acknowledgements.
const FAREWELL: Duration = Duration::from_secs(3);
/// Minimum time between two renewals without a pause.
const OFTEN: Duration = Duration::from_secs(10);
/// Delay before reconnecting if the app has too many connections.
const CROWDED: Duration = Duration::from_secs(30);
/// Delay before the history is read again, or is read for an event that could not be stored.
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

    /// Reads missed messages in webhook mode, which has no connection to serve. Never returns.
    async fn catch_up_by_itself(&self, sink: &dyn EventSink) {
        let (mut catch_up, reads) = (CatchUp::default(), &self.handler.state.client.transport.reads);
        catch_up.begin(Duration::ZERO, reads, |round| self.catch_up(round, sink));
        loop {
            if !catch_up.next().await {
                catch_up.begin(CATCHUP_DELAY, reads, |round| self.catch_up(round, sink));
            }
        }
    }

    /// Fetches the bot's identity.
    async fn learn_identity(&self) -> Result<(), ConnectionEnd> {
        let known = self.handler.state.me.get().is_some();
        let me = self.handler.state.me().await.map_err(ended)?;
        if let Some(own) = self.config.bot_user_id.as_ref().filter(|own| **own != me.user && !known) {
            tracing::warn!(
                configured = own,
                slack = me.user,
                "ignored `bot_user_id`: Slack reports another id"
            );
        }
        tracing::info!(
            account = &*self.handler.account,
            user = me.user,
            team = me.team,
            "connected to Slack"
        );
        Ok(())
    }

    /// Opens a connection, and waits for Slack's `hello`.
    pub(super) async fn open(&self) -> Result<Socket, ConnectionEnd> {
        let ConnectionsOpenResponse { url } = self.handler.state.client.open().await.map_err(ended)?;
        let mut socket = Socket::connect(&url, KEEPALIVE).await?;
        let hello = async {
            loop {
                match read(socket.next().await?)? {
                    Some(frame) if frame.kind == "hello" => return Ok(()),
                    Some(frame) if frame.kind == "disconnect" => return Err(told_to_go(&frame)),
                    _ => {}
                }
            }
        };
        timeout(HELLO, hello).await.map_err(|_| ConnectionEnd::Lost("Slack sent no hello".to_owned()))??;
        Ok(socket)
    }
}

/// An open connection and the envelopes in progress.
struct SlackSession<'a> {
    slack: &'a SlackChannel,
    sink: &'a dyn EventSink,
    socket: Socket,
    /// Envelopes in progress. Each future returns the acknowledgement once it may be sent. Look-ups for one
    /// envelope do not delay the others.
    kept: FuturesUnordered<BoxFuture<'a, Option<Acknowledgement>>>,
    next: Option<BoxFuture<'a, Result<Socket, ConnectionEnd>>>,
    renewed: Option<Instant>,
    catch_up: CatchUp<'a>,
    /// Whether the history has yet to be read for missed messages.
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

    /// Handles a frame. An error ends the session.
    fn on_frame(&mut self, frame: Result<socket::SocketFrame, SocketError>) -> Result<(), ConnectionEnd> {
        let frame = match frame.map_err(ConnectionEnd::from).and_then(read) {
            Ok(frame) => frame,
            // The next connection is already being opened.
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

    /// Handles Slack's request to end the connection.
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

    /// Switches to the next connection.
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
        // Envelopes still in progress belonged to the old connection. They are redelivered on the new one.
        self.kept = FuturesUnordered::new();
    }

    /// Waits for the envelopes in progress for a short time, and acknowledges them.
    async fn acknowledge_pending(&mut self) {
        let all = async {
            while let Some(kept) = self.kept.next().await {
                if let Some(kept) = kept
                    && self.socket.send_text(kept.frame()).await.is_err()
                {
                    return;
                }
            }
        };
        // Unacknowledged envelopes are redelivered.
        let _ = timeout(FAREWELL, all).await;
    }

    async fn acknowledge(&mut self, kept: Option<Acknowledgement>) {
        match kept {
            // A broken connection is detected by reading.
            Some(kept) if !self.broken => {
                self.socket.send_text(kept.frame()).await.ok();
            }
            // An event that could not be stored is read from the history later.
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

/// Acknowledgement of an envelope.
struct Acknowledgement {
    envelope: String,
    /// Content that Slack expects, such as the errors of a form.
    payload: Option<Value>,
}

impl Acknowledgement {
    fn frame(self) -> String {
        let mut frame = json!({"envelope_id": self.envelope});
        if let Some(payload) = self.payload {
            frame["payload"] = payload;
        }
        frame.to_string()
    }
}

/// Stores the content of an envelope. Returns its acknowledgement if it may be sent. Envelopes of unknown kinds are
/// always acknowledged.
fn keep<'a>(
    slack: &'a SlackChannel,
    sink: &'a dyn EventSink,
    envelope: String,
    kind: &str,
    payload: Value,
) -> BoxFuture<'a, Option<Acknowledgement>> {
    let source = match kind {
        "events_api" => Source::Event,
        "interactive" => Source::Action,
        "slash_commands" => Source::Command,
        _ => return Box::pin(std::future::ready(Some(Acknowledgement { envelope, payload: None }))),
    };
    let keep = async move {
        match slack.handler.keep(source, payload, sink).await {
            Ok(payload) => Some(Acknowledgement { envelope, payload }),
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

/// Parses a frame; `None` for one without content.
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
        other => ConnectionEnd::Lost(format!("Slack is closing the connection: {other}")),
    }
}

fn ended(error: SlackError) -> ConnectionEnd {
    if let Some(error) = fatal(&error) {
        return ConnectionEnd::Fatal(error);
    }
    match error {
        CallError::Wait(after) => {
            ConnectionEnd::Later("this app makes too many calls to Slack".to_owned(), after)
        }
        other => ConnectionEnd::Lost(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
