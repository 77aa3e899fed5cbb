//! The protocol of the long connection, without IO: parses frames into events and pongs, and creates acknowledgements.
//!
//! An event may arrive in fragments, in any order and interleaved with those of other events. They are joined when all
//! have arrived. An incomplete event is dropped after a while; the platform then sends it again.

use super::frame::{CONTROL, DATA, FeishuFrame, FrameHeader};
use base64::{Engine, prelude::BASE64_STANDARD};
use prost::Message;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::HashMap, time::Duration};
use tokio::time::Instant;

/// How long fragments of an incomplete event are kept, as in the platform's own clients.
const FRAGMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of fragments of an event.
const FRAGMENTS: usize = 1024;
/// Maximum number of incomplete events.
const SETS: usize = 64;
/// Maximum size of an event, and of all waiting fragments together, in bytes.
const BYTES: usize = 8 * 1024 * 1024;
/// Ping interval unless the peer requests another; the platform's own default.
pub(super) const PING: Duration = Duration::from_secs(120);
/// Minimum ping interval that the peer may request; the maximum is [`PING`].
const MIN_PING_INTERVAL: Duration = Duration::from_secs(1);

/// Result of reading a frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProtocolStep {
    /// Nothing to do: a fragment, a ping, or an unknown frame.
    Nothing,
    /// A pong. It may request a ping interval.
    Pulse(Option<Duration>),
    /// A complete event.
    Event(FeishuDelivery),
}

/// An event, and the frame for its acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FeishuDelivery {
    frame: FeishuFrame,
    /// The event, as JSON.
    pub(super) payload: Vec<u8>,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Protocol {
    service: i32,
    sets: HashMap<String, Set>,
    bytes: usize,
}

/// The fragments of an event so far.
#[derive(Debug)]
struct Set {
    parts: Vec<Option<Vec<u8>>>,
    bytes: usize,
    since: Instant,
}

/// Settings requested by the peer.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct ClientConfig {
    ping_interval: Option<i64>,
}

impl ClientConfig {
    /// Returns the requested ping interval.
    pub(super) fn ping(&self) -> Option<Duration> {
        let seconds = u64::try_from(self.ping_interval?).ok().filter(|seconds| *seconds > 0)?;
        Some(Duration::from_secs(seconds).clamp(MIN_PING_INTERVAL, PING))
    }
}

impl Protocol {
    /// Creates the state of a connection. `service` is the id in its URL.
    pub(super) fn new(service: i32) -> Self {
        Self { service, sets: HashMap::new(), bytes: 0 }
    }

    /// Returns an encoded ping.
    pub(super) fn ping(&self) -> Vec<u8> {
        let headers = vec![FrameHeader::new("type", "ping")];
        FeishuFrame { service: self.service, method: CONTROL, headers, ..FeishuFrame::default() }
            .encode_to_vec()
    }

    /// Handles the bytes of a message. Ignores bytes that are not a valid frame.
    pub(super) fn push(&mut self, bytes: &[u8], now: Instant) -> ProtocolStep {
        self.forget(now);
        let Ok(frame) = FeishuFrame::decode(bytes) else {
            tracing::warn!(size = bytes.len(), "dropped message of the long connection: not a valid frame");
            return ProtocolStep::Nothing;
        };
        match (frame.method, frame.header("type")) {
            (CONTROL, Some("pong")) => {
                let config = frame.payload.as_deref().map(serde_json::from_slice::<ClientConfig>);
                ProtocolStep::Pulse(config.and_then(Result::ok).and_then(|config| config.ping()))
            }
            (DATA, Some("event")) => {
                self.event(frame, now).map_or(ProtocolStep::Nothing, ProtocolStep::Event)
            }
            _ => ProtocolStep::Nothing,
        }
    }

    fn event(&mut self, mut frame: FeishuFrame, now: Instant) -> Option<FeishuDelivery> {
        let number = |key: &str| frame.header(key).and_then(|value| value.parse::<usize>().ok());
        let (sum, seq) = (number("sum").unwrap_or(1), number("seq").unwrap_or(0));
        if sum <= 1 {
            let payload = frame.payload.take().unwrap_or_default();
            return Some(FeishuDelivery { frame, payload });
        }
        let id = frame.header("message_id")?.to_owned();
        if sum > FRAGMENTS || seq >= sum {
            tracing::warn!(sum, seq, "dropped fragment of event: inconsistent");
            return None;
        }
        let part = frame.payload.take().unwrap_or_default();
        let payload = self.join(&id, sum, seq, part, now)?;
        Some(FeishuDelivery { frame, payload })
    }

    /// Adds a fragment. Returns the event if it is complete.
    fn join(&mut self, id: &str, sum: usize, seq: usize, part: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        if self.sets.get(id).is_some_and(|set| set.parts.len() != sum) {
            self.drop_set(id);
        }
        self.make_room(id, part.len());
        if self.bytes + part.len() > BYTES {
            tracing::warn!("dropped event in fragments: too large");
            self.drop_set(id);
            return None;
        }
        let new = || Set { parts: vec![None; sum], bytes: 0, since: now };
        let set = self.sets.entry(id.to_owned()).or_insert_with(new);
        let intent = set.parts.get_mut(seq)?;
        let before = intent.as_ref().map_or(0, Vec::len);
        set.bytes = set.bytes - before + part.len();
        self.bytes = self.bytes - before + part.len();
        *intent = Some(part);
        if set.parts.iter().any(Option::is_none) {
            return None;
        }
        let joined = self.sets.get_mut(id)?.parts.iter_mut().filter_map(Option::take).flatten().collect();
        self.drop_set(id);
        Some(joined)
    }

    /// Drops the oldest incomplete events until there is room for a fragment.
    fn make_room(&mut self, id: &str, size: usize) {
        while (self.sets.len() >= SETS && !self.sets.contains_key(id)) || self.bytes + size > BYTES {
            let others = self.sets.iter().filter(|(other, _)| *other != id);
            let Some(oldest) = others.min_by_key(|(_, set)| set.since).map(|(id, _)| id.clone()) else {
                return;
            };
            self.drop_set(&oldest);
        }
    }

    fn drop_set(&mut self, id: &str) {
        if let Some(set) = self.sets.remove(id) {
            self.bytes -= set.bytes;
        }
    }

    fn forget(&mut self, now: Instant) {
        let old: Vec<String> = self
            .sets
            .iter()
            .filter(|(_, set)| now.duration_since(set.since) >= FRAGMENT_TIMEOUT)
            .map(|(id, _)| id.clone())
            .collect();
        old.iter().for_each(|id| self.drop_set(id));
    }
}

impl FeishuDelivery {
    /// Returns the acknowledgement: 200 with the response to the platform, or 500 so that the event is redelivered. It
    /// echoes the frame.
    pub(super) fn acknowledge(mut self, answer: Result<Option<Value>, ()>, took: Duration) -> Vec<u8> {
        let response = match answer {
            Ok(Some(data)) => json!({"code": 200, "data": BASE64_STANDARD.encode(data.to_string())}),
            Ok(None) => json!({"code": 200}),
            Err(()) => json!({"code": 500}),
        };
        self.frame.headers.push(FrameHeader::new("biz_rt", took.as_millis().to_string()));
        self.frame.payload = Some(response.to_string().into_bytes());
        self.frame.encode_to_vec()
    }
}

#[cfg(test)]
mod tests;
