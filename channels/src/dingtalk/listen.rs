//! Receives events: one socket at a time, the next one open before the old one goes.
//!
//! An event is acknowledged when it is kept, or when it is plain that nobody wants it. One that cannot be kept
//! at the moment is held and tried again for a while, because DingTalk is not certain to repeat it.

use super::{
    DingTalk,
    failure::Failure,
    frame::{self, Frame, Ticket},
    offers,
};
use crate::{
    ChannelError, Inbound, Intake,
    socket::{Frame as Heard, Pulse, Socket, SocketError},
    supervise::{Ended, supervise},
};
use secrecy::ExposeSecret;
use serde_json::Value;
use std::{
    collections::VecDeque,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// What keeps a socket alive: DingTalk itself speaks every 20 to 30 s.
pub(super) const PULSE: Pulse = Pulse { ping: Duration::from_secs(30), idle: Duration::from_secs(90) };
/// A socket that is to end sooner than this after its beginning is renewed with a pause.
const SHORT: Duration = Duration::from_secs(30);
/// How often keeping an event is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// How many events may wait to be kept. Further ones are left to DingTalk's repetition.
const HELD: usize = 256;

impl DingTalk {
    pub(super) async fn run(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), ChannelError> {
        supervise(&self.health, &stop, || self.connect(intake, &stop)).await
    }

    /// Connects, listens, and changes to a new socket as often as DingTalk wants it.
    async fn connect(&self, intake: &dyn Intake, stop: &CancellationToken) -> Ended {
        let opened = tokio::select! {
            opened = self.open() => opened,
            () = stop.cancelled() => return Ended::Renew,
        };
        let mut socket = match opened {
            Ok(socket) => socket,
            Err(ended) => return ended,
        };
        tracing::info!(account = self.config.account, "connected to DingTalk");
        self.health.ready();
        let mut held = Held::new(intake);
        loop {
            let began = Instant::now();
            let ended = tokio::select! {
                ended = self.hear(&mut socket, &mut held) => ended,
                () = stop.cancelled() => Left::Stopped,
            };
            match ended {
                Left::Stopped => {
                    socket.close().await;
                    return Ended::Renew;
                }
                Left::Lost(why) => return Ended::Lost(why),
                Left::Announced if began.elapsed() < SHORT => {
                    socket.close().await;
                    return Ended::Renew;
                }
                Left::Announced => match self.change(&mut socket, stop).await {
                    Ok(()) => {}
                    Err(ended) => return ended,
                },
            }
        }
    }

    /// Opens the next socket while the old one still stands, so that no message falls between them.
    async fn change(&self, socket: &mut Socket, stop: &CancellationToken) -> Result<(), Ended> {
        let next = tokio::select! {
            opened = self.open() => opened?,
            () = stop.cancelled() => return Err(Ended::Renew),
        };
        std::mem::replace(socket, next).close().await;
        tracing::debug!(account = self.config.account, "changed to a new socket");
        Ok(())
    }

    async fn open(&self) -> Result<Socket, Ended> {
        let (mut url, ticket) = self.api.open(&[frame::MESSAGES, frame::CARDS]).await.map_err(unopened)?;
        url.query_pairs_mut().append_pair("ticket", ticket.expose_secret());
        Socket::connect(url.as_str(), PULSE).await.map_err(|error| match error {
            // The ticket was used or is too old: the next one will do.
            SocketError::Refused { status, .. } => {
                Ended::Lost(format!("the socket was refused (HTTP {status})"))
            }
            other => Ended::Lost(other.to_string()),
        })
    }

    /// Listens until the socket ends.
    async fn hear(&self, socket: &mut Socket, held: &mut Held<'_>) -> Left {
        loop {
            let answers = tokio::select! {
                heard = socket.next() => match heard {
                    Ok(Heard::Text(text)) => match frame::read(&text) {
                        Frame::Disconnect => return Left::Announced,
                        frame => self.take(frame, held).await.into_iter().collect(),
                    },
                    Ok(Heard::Binary(_)) => Vec::new(),
                    Ok(Heard::Close(told)) => return Left::Lost(goodbye(told)),
                    Err(error) => return Left::Lost(error.to_string()),
                },
                answers = held.again() => answers,
            };
            for answer in answers {
                if let Err(error) = socket.send_text(answer).await {
                    return Left::Lost(error.to_string());
                }
            }
        }
    }

    /// Has an event kept; returns what to answer, if anything.
    async fn take(&self, frame: Frame, held: &mut Held<'_>) -> Option<String> {
        let (ticket, inbound) = match frame {
            Frame::Message(ticket, data) => {
                let inbound = self.message(&data);
                (ticket, inbound)
            }
            Frame::Press(ticket, data) => {
                let inbound = self.decoder.press(&ticket.id, &data, now());
                (ticket, inbound)
            }
            Frame::Answer(answer) => return Some(answer),
            Frame::Disconnect | Frame::Nothing => return None,
        };
        self.health.event(now());
        match inbound {
            Some(inbound) => held.keep(ticket, inbound).await,
            None => Some(ticket.taken()),
        }
    }

    fn message(&self, data: &Value) -> Option<Inbound> {
        let inbound = self.decoder.message(data)?;
        Some(offers::resolve(&self.office.offers, inbound))
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

/// Events that could not be kept yet, oldest first.
struct Held<'a> {
    intake: &'a dyn Intake,
    waiting: VecDeque<(Ticket, Inbound)>,
    next: Instant,
}

impl<'a> Held<'a> {
    fn new(intake: &'a dyn Intake) -> Self {
        Self { intake, waiting: VecDeque::new(), next: Instant::now() }
    }

    /// Has an event kept and returns its acknowledgement; holds it if that cannot be now.
    async fn keep(&mut self, ticket: Ticket, inbound: Inbound) -> Option<String> {
        // In a person's order: what waits goes first.
        if self.waiting.is_empty() {
            match self.intake.accept(inbound.clone()).await {
                Ok(_) => return Some(ticket.taken()),
                Err(error) => tracing::warn!(%error, "a message cannot be kept now; trying again"),
            }
        }
        let known = self.waiting.iter().any(|(_, other)| other.key == inbound.key);
        if !known && self.waiting.len() < HELD {
            self.next = self.next.max(Instant::now() + AGAIN);
            self.waiting.push_back((ticket, inbound));
        }
        None
    }

    /// Waits for the next try and returns the acknowledgements of those that are kept now.
    async fn again(&mut self) -> Vec<String> {
        if self.waiting.is_empty() {
            std::future::pending::<()>().await;
        }
        sleep_until(self.next).await;
        let mut answers = Vec::new();
        while let Some((ticket, inbound)) = self.waiting.front() {
            if self.intake.accept(inbound.clone()).await.is_err() {
                break;
            }
            answers.push(ticket.taken());
            self.waiting.pop_front();
        }
        self.next = Instant::now() + AGAIN;
        answers
    }
}

/// Words a call for a connection that failed.
fn unopened(failure: Failure) -> Ended {
    match failure {
        Failure::Credentials(what) | Failure::Token(what) => Ended::Fatal(ChannelError::Auth(what)),
        Failure::Wait(wait) | Failure::Flooded(wait) => {
            Ended::Later("DingTalk asks to wait".to_owned(), wait)
        }
        other => Ended::Lost(other.to_string()),
    }
}

fn goodbye(told: Option<(u16, String)>) -> String {
    match told {
        Some((code, reason)) => format!("DingTalk closed the socket ({code} {reason})"),
        None => "DingTalk closed the socket".to_owned(),
    }
}

/// Returns the time in milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
