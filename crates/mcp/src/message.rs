//! Parses a server's output as messages. Servers print logs between messages, break off in the middle of a message, and
//! answer with non-standard fields, but a call must not keep waiting for an answer that arrived and could not be read.
//! An unreadable answer therefore becomes an error for its call, and text that does not belong to a call is ignored.

use crate::{
    asks::CARRIED_BY,
    repair::{self, RequestKind},
};
use pudu_net::json as foreign;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Maximum number of pending requests per session. Beyond it, the oldest is dropped.
const MAX_PENDING: usize = 1024;
/// Number of bytes at each end of an unreadable answer that are searched for its ID.
const ID_WINDOW: usize = 4 * 1024;
/// Beginning of a message, as most servers write it.
const MESSAGE_START: &[u8] = b"{\"jsonrpc\"";

/// Pending requests of a session, shared by clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingRequests(Arc<Mutex<BTreeMap<u64, (RequestId, RequestKind)>>>);

impl PendingRequests {
    /// Records a sent message: a request becomes pending, and a cancellation removes its request.
    pub(crate) fn note_sent(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let mut pending = self.lock();
                if pending.len() >= MAX_PENDING {
                    pending.pop_first();
                }
                let number = pending.last_key_value().map_or(0, |(last, _)| last + 1);
                pending.insert(number, (request.id.clone(), RequestKind::from_request(&request.request)));
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Removes a request and returns its kind, if it was pending.
    pub(crate) fn remove(&self, id: &RequestId) -> Option<RequestKind> {
        let mut pending = self.lock();
        let number = pending.iter().find(|(_, (other, _))| other == id).map(|(number, _)| *number)?;
        pending.remove(&number).map(|(_, kind)| kind)
    }

    /// Returns the pending request's own ID, because some servers return a number as a string or with a fraction.
    fn find(&self, id: &Value) -> Option<RequestId> {
        let is_same = |own: &RequestId| match (own, id) {
            (RequestId::Number(own), Value::Number(id)) => id.as_f64() == Some(*own as f64),
            (RequestId::Number(own), Value::String(id)) => id.trim().parse() == Ok(*own),
            (RequestId::String(own), Value::String(id)) => **own == **id,
            _ => false,
        };
        self.lock().values().find(|(own, _)| is_same(own)).map(|(own, _)| own.clone())
    }

    /// Returns the ID of the pending request, if there is exactly one.
    fn only(&self) -> Option<RequestId> {
        let pending = self.lock();
        let mut waiting = pending.values();
        waiting.next().filter(|_| waiting.next().is_none()).map(|(id, _)| id.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (RequestId, RequestKind)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses the messages of one server.
#[derive(Clone, Debug)]
pub(crate) struct MessageReader {
    pending: PendingRequests,
    /// The request that is being answered, on transports where each request has its own response.
    own: Option<RequestId>,
}

impl MessageReader {
    /// Creates a reader for a stream with the answers to all requests.
    pub(crate) fn shared(pending: PendingRequests) -> Self {
        Self { pending, own: None }
    }

    /// Creates a reader for the response to one message. An answer without an ID belongs to that message.
    pub(crate) fn response_to(pending: PendingRequests, message: &ClientJsonRpcMessage) -> Self {
        let own = match message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        Self { pending, own }
    }

    /// Returns the messages in a piece of text, which may have none.
    pub(crate) fn read(&self, bytes: &[u8]) -> Vec<ServerJsonRpcMessage> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
        if bytes.is_empty() {
            return Vec::new();
        }
        match foreign::parse(bytes) {
            Ok(value) => self.messages(value),
            Err(_) => self.pieces(bytes),
        }
    }

    /// Fails the call whose answer exceeded the limit. `head` and `tail` are the ends of that answer.
    pub(crate) fn read_oversized(&self, head: &[u8], tail: &[u8], limit: usize) -> Vec<ServerJsonRpcMessage> {
        let why = format!("it answered with more than {} MiB", limit / 1024 / 1024);
        self.belongs_to(head, tail).and_then(|id| self.failed(&id, why)).into_iter().collect()
    }

    /// Parses a text that is not a single JSON value: messages after other text, or without line breaks between them.
    fn pieces(&self, bytes: &[u8]) -> Vec<ServerJsonRpcMessage> {
        let mut starts: Vec<usize> = find_all(bytes, MESSAGE_START).collect();
        if starts.is_empty() || (starts.len() == 1 && starts.first() == Some(&0)) {
            return self.unreadable(bytes).into_iter().collect();
        }
        starts.push(bytes.len());
        let pieces = starts.windows(2).filter_map(|ends| bytes.get(*ends.first()?..*ends.last()?));
        pieces
            .flat_map(|piece| match foreign::parse(piece) {
                Ok(value) => self.messages(value),
                Err(_) => self.unreadable(piece).into_iter().collect(),
            })
            .collect()
    }

    fn messages(&self, value: Value) -> Vec<ServerJsonRpcMessage> {
        match value {
            Value::Object(message) => self.message(message).into_iter().collect(),
            // A batch, as in earlier versions of the protocol.
            Value::Array(batch) => batch
                .into_iter()
                .filter_map(|message| match message {
                    Value::Object(message) => self.message(message),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    fn message(&self, mut message: Map<String, Value>) -> Option<ServerJsonRpcMessage> {
        message.insert("jsonrpc".to_owned(), json!("2.0"));
        if message.get("method").is_some_and(Value::is_string) {
            message.retain(|key, _| ["jsonrpc", "id", "method", "params"].contains(&key.as_str()));
            if message.contains_key("id") {
                self.mark_carrier(&mut message);
            }
            return typed(message);
        }
        // Some servers send both keys, with null for the unused one.
        let error = message.remove("error").filter(|error| !error.is_null());
        let result = message.remove("result");
        if error.is_none() && result.is_none() {
            return None;
        }
        let id = message.get("id").filter(|id| !id.is_null());
        let id = match id {
            // A proxy that rejects a request may not know its ID.
            Some(id) => self.pending.find(id).or_else(|| self.own.clone())?,
            None => self.request_without_id()?,
        };
        let kind = self.pending.remove(&id)?;
        let mut answer = Map::from_iter([("jsonrpc".to_owned(), json!("2.0"))]);
        answer.insert("id".to_owned(), id.clone().into_json_value());
        match error {
            Some(error) => answer.insert("error".to_owned(), repair::error(error)),
            None => answer.insert("result".to_owned(), repair::result(kind, result.unwrap_or_default())),
        };
        typed(answer).or_else(|| Some(error_answer(id, "it answered with something else than a result")))
    }

    /// Records which response carries a server's request.
    fn mark_carrier(&self, message: &mut Map<String, Value>) {
        let params = message.entry("params").or_insert_with(|| json!({}));
        let Some(params) = params.as_object_mut() else { return };
        let Some(meta) = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut() else { return };
        meta.remove(CARRIED_BY);
        if let Some(own) = &self.own {
            meta.insert(CARRIED_BY.to_owned(), own.clone().into_json_value());
        }
    }

    /// Fails the call that an unreadable text answers. Returns `None` if the text is not an answer.
    fn unreadable(&self, bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
        let head = bytes.get(..ID_WINDOW).unwrap_or(bytes);
        let tail = bytes.get(bytes.len().saturating_sub(ID_WINDOW)..).unwrap_or(bytes);
        let id = self.belongs_to(head, tail)?;
        self.failed(&id, "it sent an answer that cannot be read: it is no JSON".to_owned())
    }

    fn failed(&self, id: &RequestId, why: impl Into<String>) -> Option<ServerJsonRpcMessage> {
        self.pending.remove(id)?;
        Some(error_answer(id.clone(), why.into()))
    }

    /// Returns the request that invalid JSON answers, judging by both ends of the text.
    fn belongs_to(&self, head: &[u8], tail: &[u8]) -> Option<RequestId> {
        if !head.starts_with(b"{") {
            return None;
        }
        let request = id_in_head(head).and_then(|id| self.pending.find(&id));
        let request = request.or_else(|| id_in_tail(tail).and_then(|id| self.pending.find(&id)));
        // A log line may be an object as well.
        let has = |key: &[u8]| find_all(head, key).chain(find_all(tail, key)).next().is_some();
        let is_answer = has(b"\"jsonrpc\"") || has(b"\"result\"") || has(b"\"error\"");
        request.or_else(|| self.request_without_id()).filter(|_| is_answer)
    }

    /// Returns the request that an answer without an ID belongs to.
    fn request_without_id(&self) -> Option<RequestId> {
        self.own.clone().or_else(|| self.pending.only())
    }
}

fn typed(message: Map<String, Value>) -> Option<ServerJsonRpcMessage> {
    serde_json::from_value(Value::Object(message)).ok()
}

fn error_answer(id: RequestId, why: impl Into<String>) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::internal_error(why.into(), None), Some(id))
}

fn find_all<'a>(bytes: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(needle.len()).enumerate().filter(move |(_, window)| *window == needle).map(|(at, _)| at)
}

/// Returns the ID from the outermost keys at the beginning of a broken object.
#[must_use]
pub fn id_in_head(bytes: &[u8]) -> Option<Value> {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => {
                let rest = bytes.get(at..).unwrap_or_default();
                if !in_text
                    && depth == 1
                    && let Some(id) = id_pair(rest)
                {
                    return Some(id);
                }
                in_text = !in_text;
            }
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Returns the ID at the end of a broken object, unless anything nested follows it.
fn id_in_tail(bytes: &[u8]) -> Option<Value> {
    let at = find_all(bytes, b"\"id\"").last()?;
    let rest = bytes.get(at..)?;
    let is_last = !rest.iter().any(|byte| matches!(byte, b'{' | b'[' | b']'));
    id_pair(rest).filter(|_| is_last)
}

/// Reads `"id": 7` or `"id": "7"`.
fn id_pair(bytes: &[u8]) -> Option<Value> {
    let rest = bytes.strip_prefix(b"\"id\"")?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let end = match rest.strip_prefix(b"\"") {
        Some(text) => text.iter().position(|byte| *byte == b'"')? + 2,
        None => rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len()),
    };
    serde_json::from_slice(rest.get(..end)?).ok()
}

#[cfg(test)]
mod tests;
