//! Receives events over one socket at a time. The next socket is opened before the old one is closed.
//!
//! An event is acknowledged when it is stored, or when it is certainly not needed. An event that cannot be stored is
//! held and retried, because DingTalk does not reliably redeliver it.

use super::{
    DingTalkChannel,
    facts::{DingTalkCase, DingTalkError},
    frame::{self, StreamFrame, Ticket},
};
use crate::{
    ChannelError, EventSink, HealthCell, Inbound,
    clock::now,
    socket::{Keepalive, Socket, SocketError, SocketFrame as Heard},
    supervise::{ConnectionEnd, supervise},
    transport::CallError,
};
use secrecy::ExposeSecret;
use serde_json::Value;
use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// Ping interval of the socket, and how long it may be silent before it counts as dead. DingTalk sends something every
/// 20 to 30 s.
pub(super) const KEEPALIVE: Keepalive =
    Keepalive { ping: Duration::from_secs(30), idle: Duration::from_secs(90) };
/// A socket with a shorter lifetime is replaced only after a pause.
const SHORT: Duration = Duration::from_secs(30);
/// Delay before another attempt to store an event.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(2);
/// Maximum number of events waiting to be stored. Beyond it, pudu relies on DingTalk's redelivery.
const HELD: usize = 256;

impl DingTalkChannel {
    pub(super) async fn receive(
        &self,
        sink: &dyn EventSink,
        stop: CancellationToken,
    ) -> Result<(), ChannelError> {
        self.attend(&UnstoredEvents::new(sink, &self.health), &stop).await
    }

    /// Stays connected. Held events outlive every socket, because DingTalk does not reliably redeliver them.
    async fn attend(&self, held: &UnstoredEvents<'_>, stop: &CancellationToken) -> Result<(), ChannelError> {
        tokio::select! {
            result = supervise(&self.health, stop, || self.connect(held, stop)) => result,
            never = held.persist() => match never {},
        }
    }

    /// Connects, listens, and switches to a new socket whenever DingTalk asks for it.
    async fn connect(&self, held: &UnstoredEvents<'_>, stop: &CancellationToken) -> ConnectionEnd {
        let opened = tokio::select! {
            opened = self.open() => opened,
            () = stop.cancelled() => return ConnectionEnd::Renew,
        };
        let mut socket = match opened {
            Ok(socket) => socket,
            Err(ended) => return ended,
        };
        tracing::info!(account = self.config.account, "connected to DingTalk");
        self.health.ready();
        loop {
            let began = Instant::now();
            let ended = tokio::select! {
                ended = self.read_until_end(&mut socket, held) => ended,
                () = stop.cancelled() => SocketEnd::Stopped,
            };
            match ended {
                SocketEnd::Stopped => {
                    socket.close().await;
                    return ConnectionEnd::Renew;
                }
                SocketEnd::Lost(why) => return ConnectionEnd::Lost(why),
                SocketEnd::Announced if began.elapsed() < SHORT => {
                    socket.close().await;
                    return ConnectionEnd::Renew;
                }
                SocketEnd::Announced => match self.change(&mut socket, stop).await {
                    Ok(()) => {}
                    Err(ended) => return ended,
                },
            }
        }
    }

    /// Opens the next socket while the old one is still open, so that no message is lost in between.
    async fn change(&self, socket: &mut Socket, stop: &CancellationToken) -> Result<(), ConnectionEnd> {
        let next = tokio::select! {
            opened = self.open() => opened?,
            () = stop.cancelled() => return Err(ConnectionEnd::Renew),
        };
        std::mem::replace(socket, next).close().await;
        tracing::debug!(account = self.config.account, "switched to a new connection");
        Ok(())
    }

    async fn open(&self) -> Result<Socket, ConnectionEnd> {
        let (mut url, ticket) = self.api.open(&[frame::MESSAGES, frame::CARDS]).await.map_err(unopened)?;
        url.query_pairs_mut().append_pair("ticket", ticket.expose_secret());
        Socket::connect(url.as_str(), KEEPALIVE).await.map_err(|error| match error {
            // The ticket was used before or has expired: try again with a new one.
            SocketError::Refused { status, .. } => {
                ConnectionEnd::Lost(format!("the connection was refused (HTTP {status})"))
            }
            other => ConnectionEnd::Lost(other.to_string()),
        })
    }

    /// Listens until the socket ends.
    async fn read_until_end(&self, socket: &mut Socket, held: &UnstoredEvents<'_>) -> SocketEnd {
        loop {
            let answer = tokio::select! {
                heard = socket.next() => match heard {
                    Ok(Heard::Text(text)) => match frame::read(&text) {
                        StreamFrame::Disconnect => return SocketEnd::Announced,
                        frame => self.take(frame, held).await,
                    },
                    Ok(Heard::Binary(_)) => None,
                    Ok(Heard::Close(close)) => return SocketEnd::Lost(close_reason(close)),
                    Err(error) => return SocketEnd::Lost(error.to_string()),
                },
                answer = held.answer() => Some(answer),
            };
            if let Some(answer) = answer
                && let Err(error) = socket.send_text(answer).await
            {
                return SocketEnd::Lost(error.to_string());
            }
        }
    }

    /// Stores an event. Returns the acknowledgement to send, if any.
    async fn take(&self, frame: StreamFrame, held: &UnstoredEvents<'_>) -> Option<String> {
        let (ticket, inbound) = match frame {
            StreamFrame::Message(ticket, data) => {
                let inbound = self.message(&data);
                (ticket, inbound)
            }
            StreamFrame::Press(ticket, data) => {
                let inbound = self.decoder.press(&ticket.id, &data, now());
                (ticket, inbound)
            }
            StreamFrame::Answer(answer) => return Some(answer),
            StreamFrame::Disconnect | StreamFrame::Ignored => return None,
        };
        self.health.event(now());
        match inbound {
            Some(inbound) => held.keep(ticket, self.names.resolve(inbound)).await,
            None => Some(ticket.ack()),
        }
    }

    fn message(&self, data: &Value) -> Option<Inbound> {
        let inbound = self.decoder.message(data)?;
        Some(self.state.numbered.resolve(inbound))
    }
}

/// How a socket ended.
enum SocketEnd {
    /// DingTalk announced that it will close the socket.
    Announced,
    /// The connection broke, for this reason.
    Lost(String),
    /// The channel was stopped.
    Stopped,
}

/// Events that could not be stored yet.
struct UnstoredEvents<'a> {
    sink: &'a dyn EventSink,
    /// Receives the errors of events that could not be stored.
    health: &'a HealthCell,
    queue: Mutex<EventQueue>,
    /// Notified when an event starts to wait.
    waits: Notify,
    /// Notified when a waiting event has been stored.
    kept: Notify,
}

#[derive(Default)]
struct EventQueue {
    /// The waiting events, oldest first.
    waiting: VecDeque<(Ticket, Inbound)>,
    /// Acknowledgements not sent yet, oldest first.
    answers: VecDeque<String>,
}

impl<'a> UnstoredEvents<'a> {
    fn new(sink: &'a dyn EventSink, health: &'a HealthCell) -> Self {
        Self { sink, health, queue: Mutex::default(), waits: Notify::new(), kept: Notify::new() }
    }

    fn queue(&self) -> MutexGuard<'_, EventQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an event and returns its acknowledgement. Holds the event if it cannot be stored now.
    async fn keep(&self, ticket: Ticket, inbound: Inbound) -> Option<String> {
        // Keeps each user's order: waiting events are stored first.
        let first = self.queue().waiting.is_empty();
        if first {
            match self.sink.accept(inbound.clone()).await {
                Ok(_) => return Some(ticket.ack()),
                Err(error) => {
                    tracing::warn!(%error, "failed to accept message; trying again");
                    self.health.not_kept(error);
                }
            }
        }
        let waiting = &mut self.queue().waiting;
        let known = waiting.iter().any(|(_, other)| other.key == inbound.key);
        if !known && waiting.len() < HELD {
            waiting.push_back((ticket, inbound));
            self.waits.notify_one();
        }
        None
    }

    /// Tries repeatedly to store the waiting events, with or without a socket.
    async fn persist(&self) -> Infallible {
        loop {
            self.waits.notified().await;
            while self.oldest().is_some() {
                sleep(STORE_RETRY_DELAY).await;
                self.again().await;
            }
        }
    }

    /// Stores as many waiting events as possible. Cancel-safe: an event leaves the queue when it is stored, and its
    /// acknowledgement is queued at the same moment.
    async fn again(&self) {
        while let Some(inbound) = self.oldest() {
            if let Err(error) = self.sink.accept(inbound).await {
                // Overrides the health that a new connection may have just reported.
                self.health.not_kept(error);
                return;
            }
            self.settle();
        }
        self.health.kept();
    }

    fn oldest(&self) -> Option<Inbound> {
        self.queue().waiting.front().map(|(_, inbound)| inbound.clone())
    }

    /// Records that the oldest waiting event is stored.
    fn settle(&self) {
        let mut queue = self.queue();
        let Some((ticket, _)) = queue.waiting.pop_front() else { return };
        // After a long time without a socket, drop the oldest: DingTalk has given up on them too.
        if queue.answers.len() >= HELD {
            queue.answers.pop_front();
        }
        queue.answers.push_back(ticket.ack());
        self.kept.notify_one();
    }

    /// Waits for the acknowledgement of a held event.
    async fn answer(&self) -> String {
        loop {
            let answer = self.queue().answers.pop_front();
            match answer {
                Some(answer) => return answer,
                None => self.kept.notified().await,
            }
        }
    }
}

/// Converts a failure to open a connection to the connection's end.
fn unopened(failure: DingTalkError) -> ConnectionEnd {
    match failure {
        CallError::Auth(what) | CallError::StaleToken(what) => ConnectionEnd::Fatal(ChannelError::Auth(what)),
        CallError::Wait(wait) | CallError::Special(DingTalkCase::Flooded(wait)) => {
            ConnectionEnd::Later("DingTalk asks to wait".to_owned(), wait)
        }
        other => ConnectionEnd::Lost(other.to_string()),
    }
}

fn close_reason(close: Option<(u16, String)>) -> String {
    match close {
        Some((code, reason)) => format!("DingTalk closed the connection ({code} {reason})"),
        None => "DingTalk closed the connection".to_owned(),
    }
}

#[cfg(test)]
mod tests;
