//! Receives events: one socket at a time, the next one open before the old one goes.
//!
//! An event is acknowledged when it is kept, or when it is certainly not needed. One that cannot be kept at the moment
//! is held and tried again for a while, because DingTalk is not certain to repeat it.

use super::{
    DingTalkChannel,
    failure::{DingTalkCase, DingTalkError},
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

/// Ping interval of the socket, and the silence after which it is dead: DingTalk itself speaks every 20 to
/// 30 s.
pub(super) const KEEPALIVE: Keepalive =
    Keepalive { ping: Duration::from_secs(30), idle: Duration::from_secs(90) };
/// A socket that is to end sooner than this after its beginning is renewed with a pause.
const SHORT: Duration = Duration::from_secs(30);
/// Delay before storing an event is tried again.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(2);
/// How many events may wait to be kept. Further ones are left to DingTalk's repetition.
const HELD: usize = 256;

impl DingTalkChannel {
    pub(super) async fn receive(
        &self,
        sink: &dyn EventSink,
        stop: CancellationToken,
    ) -> Result<(), ChannelError> {
        self.attend(&UnstoredEvents::new(sink, &self.health), &stop).await
    }

    /// Stays connected. Held events outlive every socket: DingTalk is not certain to repeat them.
    async fn attend(&self, held: &UnstoredEvents<'_>, stop: &CancellationToken) -> Result<(), ChannelError> {
        tokio::select! {
            result = supervise(&self.health, stop, || self.connect(held, stop)) => result,
            never = held.persist() => match never {},
        }
    }

    /// Connects, listens, and changes to a new socket as often as DingTalk wants it.
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
                () = stop.cancelled() => Left::Stopped,
            };
            match ended {
                Left::Stopped => {
                    socket.close().await;
                    return ConnectionEnd::Renew;
                }
                Left::Lost(why) => return ConnectionEnd::Lost(why),
                Left::Announced if began.elapsed() < SHORT => {
                    socket.close().await;
                    return ConnectionEnd::Renew;
                }
                Left::Announced => match self.change(&mut socket, stop).await {
                    Ok(()) => {}
                    Err(ended) => return ended,
                },
            }
        }
    }

    /// Opens the next socket while the old one is still open, so that no message falls between them.
    async fn change(&self, socket: &mut Socket, stop: &CancellationToken) -> Result<(), ConnectionEnd> {
        let next = tokio::select! {
            opened = self.open() => opened?,
            () = stop.cancelled() => return Err(ConnectionEnd::Renew),
        };
        std::mem::replace(socket, next).close().await;
        tracing::debug!(account = self.config.account, "changed to a new socket");
        Ok(())
    }

    async fn open(&self) -> Result<Socket, ConnectionEnd> {
        let (mut url, ticket) = self.api.open(&[frame::MESSAGES, frame::CARDS]).await.map_err(unopened)?;
        url.query_pairs_mut().append_pair("ticket", ticket.expose_secret());
        Socket::connect(url.as_str(), KEEPALIVE).await.map_err(|error| match error {
            // The ticket was used or is too old: the next one will do.
            SocketError::Refused { status, .. } => {
                ConnectionEnd::Lost(format!("the socket was refused (HTTP {status})"))
            }
            other => ConnectionEnd::Lost(other.to_string()),
        })
    }

    /// Listens until the socket ends.
    async fn read_until_end(&self, socket: &mut Socket, held: &UnstoredEvents<'_>) -> Left {
        loop {
            let answer = tokio::select! {
                heard = socket.next() => match heard {
                    Ok(Heard::Text(text)) => match frame::read(&text) {
                        StreamFrame::Disconnect => return Left::Announced,
                        frame => self.take(frame, held).await,
                    },
                    Ok(Heard::Binary(_)) => None,
                    Ok(Heard::Close(told)) => return Left::Lost(close_reason(told)),
                    Err(error) => return Left::Lost(error.to_string()),
                },
                answer = held.answer() => Some(answer),
            };
            if let Some(answer) = answer
                && let Err(error) = socket.send_text(answer).await
            {
                return Left::Lost(error.to_string());
            }
        }
    }

    /// Stores an event; returns the answer to send, if any.
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
            StreamFrame::Disconnect | StreamFrame::Nothing => return None,
        };
        self.health.event(now());
        match inbound {
            Some(inbound) => held.keep(ticket, self.names.resolve(inbound)).await,
            None => Some(ticket.taken()),
        }
    }

    fn message(&self, data: &Value) -> Option<Inbound> {
        let inbound = self.decoder.message(data)?;
        Some(self.state.numbered.resolve(inbound))
    }
}

/// How a socket ended.
enum Left {
    /// DingTalk said that it will close it.
    Announced,
    /// It broke; why.
    Lost(String),
    /// It is time to stop.
    Stopped,
}

/// Events that could not be kept yet.
struct UnstoredEvents<'a> {
    sink: &'a dyn EventSink,
    /// Receives the errors of events that could not be stored.
    health: &'a HealthCell,
    queue: Mutex<EventQueue>,
    /// Something began to wait.
    waits: Notify,
    /// Something that waited is kept.
    kept: Notify,
}

#[derive(Default)]
struct EventQueue {
    /// Oldest first.
    waiting: VecDeque<(Ticket, Inbound)>,
    /// Acknowledgements that no socket has taken yet, oldest first.
    answers: VecDeque<String>,
}

impl<'a> UnstoredEvents<'a> {
    fn new(sink: &'a dyn EventSink, health: &'a HealthCell) -> Self {
        Self { sink, health, queue: Mutex::default(), waits: Notify::new(), kept: Notify::new() }
    }

    fn queue(&self) -> MutexGuard<'_, EventQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has an event kept and returns its acknowledgement; holds it if that cannot be now.
    async fn keep(&self, ticket: Ticket, inbound: Inbound) -> Option<String> {
        // In each person's order: waiting events go first.
        let first = self.queue().waiting.is_empty();
        if first {
            match self.sink.accept(inbound.clone()).await {
                Ok(_) => return Some(ticket.taken()),
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

    /// Stores as many waiting events as possible. A caller that drops this future loses nothing: an event leaves the
    /// queue when it is kept, and at that moment its acknowledgement is there.
    async fn again(&self) {
        while let Some(inbound) = self.oldest() {
            if let Err(error) = self.sink.accept(inbound).await {
                // Also where a new connection has just called itself well.
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

    /// The oldest is kept.
    fn settle(&self) {
        let mut queue = self.queue();
        let Some((ticket, _)) = queue.waiting.pop_front() else { return };
        // Without a socket for long, the oldest are left: DingTalk has given them up too.
        if queue.answers.len() >= HELD {
            queue.answers.pop_front();
        }
        queue.answers.push_back(ticket.taken());
        self.kept.notify_one();
    }

    /// Waits for the acknowledgement of something that was held.
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

/// Words a call for a connection that failed.
fn unopened(failure: DingTalkError) -> ConnectionEnd {
    match failure {
        CallError::Auth(what) | CallError::StaleToken(what) => ConnectionEnd::Fatal(ChannelError::Auth(what)),
        CallError::Wait(wait) | CallError::Special(DingTalkCase::Flooded(wait)) => {
            ConnectionEnd::Later("DingTalk asks to wait".to_owned(), wait)
        }
        other => ConnectionEnd::Lost(other.to_string()),
    }
}

fn close_reason(told: Option<(u16, String)>) -> String {
    match told {
        Some((code, reason)) => format!("DingTalk closed the socket ({code} {reason})"),
        None => "DingTalk closed the socket".to_owned(),
    }
}

#[cfg(test)]
mod tests;
