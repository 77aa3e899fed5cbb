//! Pending events for the bot: each is sent to one of the open connections and repeated if it is not acknowledged in
//! time, or if its connection ends.

use super::{core::Core, world::World};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Number of repetitions of an event.
const TRIES: u32 = 3;
/// Maximum number of frames waiting for one connection.
pub(crate) const FRAMES: usize = 1024;
/// Maximum number of connections of one app.
pub(crate) const CONNECTIONS: usize = 10;
/// Number of remembered delivered events, for repetition.
const PAST: usize = 4096;

/// Output of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Text(Value),
    /// Closes the connection properly.
    Close,
    /// Breaks it.
    Drop,
}

/// An open connection.
pub(crate) struct Socket {
    pub(crate) id: u64,
    pub(crate) frames: mpsc::Sender<Frame>,
}

/// A pending event.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) id: String,
    /// `events_api`, `interactive` or `slash_commands`.
    pub(crate) kind: &'static str,
    pub(crate) payload: Value,
    pub(crate) accepts: bool,
    attempt: u32,
    reason: &'static str,
    /// Its connection.
    socket: Option<u64>,
    /// Time of the next delivery.
    due: Instant,
    /// Whether a post with it is in progress.
    posting: bool,
}

/// A delivered event of a message, for repetition.
struct Told {
    chat: String,
    ts: String,
    payload: Value,
}

/// Pending events, and connections.
#[derive(Default)]
pub(crate) struct Envelopes {
    waiting: Vec<Envelope>,
    told: Vec<Told>,
    pub(crate) sockets: Vec<Socket>,
    turn: usize,
    /// Unused URLs of connections.
    pub(crate) tickets: Vec<String>,
    /// Whether Socket Mode is disabled.
    pub(crate) disabled: bool,
    /// IDs of given up events.
    pub(crate) lost: Vec<String>,
    /// Acknowledgements with a response.
    pub(crate) answers: Vec<Value>,
}

impl World {
    /// Adds an event for the bot.
    pub(crate) fn tell(&mut self, kind: &'static str, payload: Value, accepts: bool) {
        let away = self.envelopes.sockets.is_empty() && self.events_url.is_none();
        // A click or a command without a connection fails immediately, visible to the user.
        if away && (self.options.lost_while_away || kind != "events_api") {
            self.envelopes.lost.push(payload["event_id"].as_str().unwrap_or(kind).to_owned());
            return;
        }
        self.push(kind, payload, accepts, 0);
    }

    fn push(&mut self, kind: &'static str, payload: Value, accepts: bool, attempt: u32) {
        let n = self.fresh();
        self.envelopes.waiting.push(Envelope {
            id: format!("57d6a792-4d35-4d0b-b6aa-{n:012}"),
            kind,
            payload,
            accepts,
            attempt,
            reason: if attempt > 0 { "timeout" } else { "" },
            socket: None,
            due: Instant::now(),
            posting: false,
        });
    }

    pub(crate) fn remember(&mut self, chat: &str, ts: &str, payload: &Value) {
        if self.envelopes.told.len() == PAST {
            self.envelopes.told.remove(0);
        }
        let (chat, ts) = (chat.to_owned(), ts.to_owned());
        self.envelopes.told.push(Told { chat, ts, payload: payload.clone() });
    }

    /// Repeats the event of a message, as if it had not been acknowledged.
    pub(crate) fn repeat(&mut self, chat: &str, ts: &str) {
        let told = self.envelopes.told.iter().filter(|told| told.chat == chat && told.ts == ts);
        let payloads: Vec<Value> = told.map(|told| told.payload.clone()).collect();
        for payload in payloads {
            self.push("events_api", payload, false, 1);
        }
    }

    /// Sends due events to the connections, in turn.
    pub(crate) fn pump(&mut self, now: Instant) {
        let patience = self.options.ack_within;
        let Envelopes { waiting, sockets, turn, lost, .. } = &mut self.envelopes;
        for envelope in waiting.iter_mut().filter(|envelope| envelope.due <= now) {
            if envelope.socket.take().is_some() {
                envelope.again("timeout");
            }
            if sockets.is_empty() {
                continue;
            }
            *turn = turn.wrapping_add(1);
            let Some(socket) = sockets.get(*turn % sockets.len()) else { continue };
            if envelope.attempt <= TRIES && socket.frames.try_send(Frame::Text(envelope.frame())).is_ok() {
                envelope.socket = Some(socket.id);
                envelope.due = now + patience;
            }
        }
        waiting.retain(|envelope| {
            if envelope.attempt > TRIES {
                lost.push(envelope.payload["event_id"].as_str().unwrap_or(envelope.kind).to_owned());
            }
            envelope.attempt <= TRIES
        });
    }

    /// Returns the next due time.
    fn next_due(&self) -> Option<Instant> {
        let connected = !self.envelopes.sockets.is_empty();
        self.envelopes
            .waiting
            .iter()
            .filter(|envelope| connected || envelope.socket.is_some())
            .map(|e| e.due)
            .min()
    }

    /// Processes the response to an event, `null` if there is none.
    pub(crate) fn answered(&mut self, id: &str, response: &Value) {
        let found = self.envelopes.waiting.iter().find(|envelope| envelope.id == id);
        if let Some(payload) = found.map(|envelope| envelope.payload.clone()) {
            self.responded(&payload, response);
        }
    }

    /// Processes an acknowledgement. Returns `false` if nothing waits for it.
    pub(crate) fn acknowledged(&mut self, id: &str) -> bool {
        let before = self.envelopes.waiting.len();
        self.envelopes.waiting.retain(|envelope| envelope.id != id);
        self.envelopes.waiting.len() < before
    }

    /// Removes a connection: its unacknowledged events are sent to another.
    pub(crate) fn disconnected(&mut self, socket: u64) {
        self.envelopes.sockets.retain(|other| other.id != socket);
        for envelope in &mut self.envelopes.waiting {
            if envelope.socket == Some(socket) {
                envelope.socket = None;
                envelope.again("connection_closed");
                envelope.due = Instant::now();
            }
        }
    }

    /// Returns the number of unacknowledged events.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.envelopes.waiting.len()
    }

    pub(crate) fn next_post(&mut self, now: Instant) -> Option<Envelope> {
        let due = |envelope: &&mut Envelope| !envelope.posting && envelope.due <= now;
        let envelope = self.envelopes.waiting.iter_mut().find(due)?;
        envelope.posting = true;
        Some(envelope.clone())
    }

    pub(crate) fn next_post_at(&self) -> Option<Instant> {
        self.envelopes.waiting.iter().filter(|envelope| !envelope.posting).map(|envelope| envelope.due).min()
    }

    /// Processes the end of a post: accepted, or to be repeated if wanted.
    pub(crate) fn posted(&mut self, id: &str, taken: bool, again: bool, pause: Duration) {
        if taken || !again {
            self.acknowledged(id);
            return;
        }
        if let Some(envelope) = self.envelopes.waiting.iter_mut().find(|envelope| envelope.id == id) {
            envelope.posting = false;
            envelope.again("http_error");
            // The first repetition is immediate.
            let pause = if envelope.attempt == 1 { Duration::ZERO } else { pause };
            envelope.due = Instant::now() + pause;
        }
        self.envelopes.waiting.retain(|envelope| envelope.attempt <= TRIES);
    }
}

impl Envelope {
    fn again(&mut self, reason: &'static str) {
        self.attempt += 1;
        self.reason = reason;
    }

    /// Returns the number and the reason of the repetition.
    pub(crate) fn retry(&self) -> Option<(u32, &'static str)> {
        (self.attempt > 0).then_some((self.attempt, self.reason))
    }

    fn frame(&self) -> Value {
        let mut frame = json!({
            "envelope_id": self.id, "type": self.kind, "payload": self.payload,
            "accepts_response_payload": self.accepts,
        });
        if self.kind == "events_api" {
            frame["retry_attempt"] = self.attempt.into();
            frame["retry_reason"] = self.reason.into();
        }
        frame
    }
}

/// Sends events while it is polled.
pub(crate) async fn deliver(core: Arc<Core>) {
    let mut changed = core.watch();
    loop {
        changed.borrow_and_update();
        let next = {
            let mut world = core.lock();
            if world.events_url.is_none() {
                world.pump(Instant::now());
                world.next_due()
            } else {
                None
            }
        };
        tokio::select! {
            told = changed.changed() => if told.is_err() { return },
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}
