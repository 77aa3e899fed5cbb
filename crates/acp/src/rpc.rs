//! JSON-RPC over lines, for both sides of the protocol. Invalid lines, unexpected answers and unknown fields never
//! affect other messages.
//!
//! Deliberately absent: the protocol's methods, and batches, which the protocol does not have.

use pudu_mcp::child::{LineReader, MAX_MESSAGE_BYTES, OutputLine, id_in_head};
use pudu_net::json as foreign;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

/// Version of the protocol.
pub const PROTOCOL_VERSION: u16 = 1;
/// Maximum number of queued messages that the other side has not read. Further messages wait for a slot in the queue.
const MAX_QUEUED: usize = 64;
/// Code of an error: the message is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// Code of an error: the message is not a request, or is too long.
pub const INVALID_REQUEST: i64 = -32600;
/// Code of an error: there is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Code of an error: the parameters are wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// Code of an error: the method failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// Code of an error: the agent needs a sign-in first.
pub const AUTH_REQUIRED: i64 = -32000;

/// Error that one side returns to the other.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// Details, if there are any.
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without details.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Reads a foreign error, whose fields may be missing.
    fn read(error: &Value) -> Self {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let message = match error.get("message") {
            Some(message) => text(message),
            None => text(error),
        };
        let code = error.get("code").and_then(Value::as_i64).unwrap_or(INTERNAL_ERROR);
        Self { code, message, data: error.get("data").cloned() }
    }

    fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// The other side returned an error.
    #[error("{0}")]
    Refused(#[from] RpcError),
    /// The connection ended.
    #[error("the connection ended")]
    Closed,
}

/// A message of the other side that is not an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum RpcMessage {
    /// A request, which expects an answer.
    Request {
        /// The other side's id.
        id: Value,
        /// The method.
        method: String,
        /// The parameters; null if there are none.
        params: Value,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The parameters; null if there are none.
        params: Value,
    },
    /// A line that is not a message.
    Noise(Vec<u8>),
}

type PendingAnswers = HashMap<u64, oneshot::Sender<Result<Value, RequestError>>>;

/// Sends messages to the other side. Cheap to clone.
#[derive(Clone)]
pub struct RpcPeer {
    outgoing: mpsc::Sender<Vec<u8>>,
    calls: Arc<Mutex<PendingCalls>>,
}

#[derive(Default)]
struct PendingCalls {
    last: u64,
    waiting: PendingAnswers,
    /// Whether the other side has closed the connection.
    is_closed: bool,
}

/// Receives the messages of the other side. Answers arrive only while it is read.
pub struct RpcReader<R> {
    lines: LineReader<R>,
    peer: RpcPeer,
}

/// Connects to the other side of two pipes. The task ends once everything has been written and no peer is left, or the
/// other side stopped reading.
pub fn connect<R: AsyncRead + Unpin>(
    input: R,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> (RpcPeer, RpcReader<R>, JoinHandle<()>) {
    let (outgoing, queued) = mpsc::channel(MAX_QUEUED);
    let writing = tokio::spawn(write(queued, output));
    let peer = RpcPeer { outgoing, calls: Arc::default() };
    (peer.clone(), RpcReader { lines: LineReader::new(input), peer }, writing)
}

async fn write(mut queued: mpsc::Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) {
    while let Some(line) = queued.recv().await {
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

impl RpcPeer {
    /// Sends a request and returns its result.
    ///
    /// # Errors
    /// When the other side refuses it, or the connection ends first.
    ///
    /// # Cancel safety
    /// Dropping the future only drops the answer.
    pub async fn request(&self, method: &str, params: &impl Serialize) -> Result<Value, RequestError> {
        let (id, answer) = self.expect();
        let _waits = WaitingCall { calls: &self.calls, id };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": to_json(params) });
        self.send(&message).await?;
        answer.await.unwrap_or(Err(RequestError::Closed))
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), RequestError> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": to_json(params) })).await
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn respond<T: Serialize>(
        &self,
        id: &Value,
        result: Result<T, RpcError>,
    ) -> Result<(), RequestError> {
        let message = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": to_json(&result) }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error.to_json() }),
        };
        self.send(&message).await
    }

    async fn send(&self, message: &Value) -> Result<(), RequestError> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.outgoing.send(line).await.map_err(|_| RequestError::Closed)
    }

    fn expect(&self) -> (u64, oneshot::Receiver<Result<Value, RequestError>>) {
        let (answer, answered) = oneshot::channel();
        let mut calls = lock(&self.calls);
        calls.last += 1;
        let id = calls.last;
        // Without an entry, the request fails at once.
        if !calls.is_closed {
            calls.waiting.insert(id, answer);
        }
        (id, answered)
    }
}

fn to_json(value: &impl Serialize) -> Value {
    // The protocol's types consist of texts, numbers, lists and maps with texts as keys.
    serde_json::to_value(value).unwrap_or_default()
}

fn lock(calls: &Mutex<PendingCalls>) -> MutexGuard<'_, PendingCalls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a request that is no longer waited for.
struct WaitingCall<'a> {
    calls: &'a Mutex<PendingCalls>,
    id: u64,
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        lock(self.calls).waiting.remove(&self.id);
    }
}

impl<R: AsyncRead + Unpin> RpcReader<R> {
    /// Returns the next message that is not an answer; `None` once the connection has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<RpcMessage> {
        loop {
            let Ok(Some(line)) = self.lines.next().await else { return None };
            let read = match line {
                OutputLine::Whole(line) if line.trim_ascii().is_empty() => None,
                OutputLine::Whole(line) => self.read(line),
                OutputLine::Oversized { head, .. } => Some(self.read_oversized(head)),
            };
            if read.is_some() {
                return read;
            }
        }
    }

    /// Reads a message. An answer goes to its request.
    fn read(&self, line: Vec<u8>) -> Option<RpcMessage> {
        let Ok(Value::Object(mut message)) = foreign::parse(line.trim_ascii()) else {
            return Some(RpcMessage::Noise(line));
        };
        let id = message.remove("id").filter(|id| !id.is_null());
        let params = message.remove("params").unwrap_or_default();
        match (message.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Some(RpcMessage::Request { id, method, params }),
            (Some(Value::String(method)), None) => Some(RpcMessage::Notification { method, params }),
            (None, Some(id)) if message.contains_key("result") || message.contains_key("error") => {
                self.answer(&id, result(&mut message));
                None
            }
            _ => Some(RpcMessage::Noise(line)),
        }
    }

    /// Fails the request whose answer is too long. Another message that is too long counts as noise, unless it is a
    /// request: the other side waits for an answer.
    fn read_oversized(&self, head: Vec<u8>) -> RpcMessage {
        let Some(id) = id_in_head(&head) else { return RpcMessage::Noise(head) };
        let has = |key: &[u8]| head.windows(key.len()).any(|window| window == key);
        if has(b"\"method\"") {
            return RpcMessage::Request { id, method: String::new(), params: Value::Null };
        }
        let why = format!("the answer has more than {} MiB", MAX_MESSAGE_BYTES / 1024 / 1024);
        self.answer(&id, Err(RpcError::new(INVALID_REQUEST, why)));
        RpcMessage::Noise(head)
    }

    /// Passes an answer to its request, if that still waits. Some programs return a number as a text.
    fn answer(&self, id: &Value, result: Result<Value, RpcError>) {
        let id = id.as_u64().or_else(|| id.as_str()?.trim().parse().ok());
        let waiting = id.and_then(|id| lock(&self.peer.calls).waiting.remove(&id));
        if let Some(waiting) = waiting {
            waiting.send(result.map_err(RequestError::Refused)).ok();
        }
    }
}

impl<R> Drop for RpcReader<R> {
    /// Fails the waiting requests, which get no answer any more.
    fn drop(&mut self) {
        let mut calls = lock(&self.peer.calls);
        calls.is_closed = true;
        calls.waiting.clear();
    }
}

/// Returns the result in an answer. Some programs send both keys, with null for the unused one.
fn result(answer: &mut Map<String, Value>) -> Result<Value, RpcError> {
    match answer.remove("error").filter(|error| !error.is_null()) {
        Some(error) => Err(RpcError::read(&error)),
        None => Ok(answer.remove("result").unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    /// Returns one side, and the bytes of the other.
    fn pair() -> (RpcPeer, RpcReader<DuplexStream>, DuplexStream, DuplexStream) {
        let (input, theirs) = duplex(1 << 20);
        let (output, ours) = duplex(1 << 20);
        let (peer, reader, _) = connect(input, output);
        (peer, reader, theirs, ours)
    }

    #[tokio::test]
    async fn messages_survive_noise_between_them() {
        let (peer, mut reader, mut theirs, mut ours) = pair();
        let lines = b"Installing packages...\n[1,2]\n\xff\xfe\n{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r\n\n\
            {\"id\":\"x\",\"method\":\"b\",\"params\":{\"t\":\"\\ud83d\"},\"more\":1}\n{\"id\":99,\"result\":1}\n\
            {\"jsonrpc\":\"2.0\",\"id\":\"1\",\"error\":null,\"result\":{\"ok\":true}}\n";
        theirs.write_all(lines).await.unwrap();
        let answer = tokio::spawn(async move { peer.request("hello", &json!({"n": 1})).await });
        let mut sent = vec![0; 1024];
        let length = ours.read(&mut sent).await.unwrap();
        let sent: Value = serde_json::from_slice(&sent[..length]).unwrap();
        assert_eq!(sent, json!({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"n": 1}}));
        for noise in ["Installing packages...", "[1,2]", "\u{fffd}\u{fffd}"] {
            let Some(RpcMessage::Noise(line)) = reader.next().await else { panic!("{noise}") };
            assert_eq!(String::from_utf8_lossy(&line), noise);
        }
        let notified = RpcMessage::Notification { method: "a".into(), params: Value::Null };
        assert_eq!(reader.next().await, Some(notified));
        let params = json!({"t": "\u{fffd}"});
        let request = RpcMessage::Request { id: "x".into(), method: "b".into(), params };
        assert_eq!(reader.next().await, Some(request));
        drop(theirs);
        assert_eq!(reader.next().await, None);
        assert_eq!(answer.await.unwrap(), Ok(json!({"ok": true})));
    }

    #[tokio::test]
    async fn a_giant_message_fails_only_its_own_request() {
        let (peer, mut reader, mut theirs, _ours) = pair();
        let first = tokio::spawn({
            let peer = peer.clone();
            async move { peer.request("a", &Value::Null).await }
        });
        let giant = |head: &str| [head.as_bytes(), &vec![b'x'; MAX_MESSAGE_BYTES + 1], b"\"}\n"].concat();
        let bytes = [
            giant("{\"id\":1,\"result\":\""),
            giant("{\"id\":7,\"method\":\"session/request_permission\",\"params\":\""),
            giant("{\"method\":\"session/update\",\"params\":\""),
            b"{\"method\":\"last\"}\n".to_vec(),
        ]
        .concat();
        tokio::spawn(async move { theirs.write_all(&bytes).await });
        // The request is sent before its answer is read.
        tokio::task::yield_now().await;
        assert!(matches!(reader.next().await, Some(RpcMessage::Noise(_))));
        let message = reader.next().await;
        assert_eq!(
            message,
            Some(RpcMessage::Request { id: 7.into(), method: String::new(), params: Value::Null })
        );
        assert!(matches!(reader.next().await, Some(RpcMessage::Noise(_))));
        assert!(
            matches!(reader.next().await, Some(RpcMessage::Notification { method, .. }) if method == "last")
        );
        let Err(RequestError::Refused(error)) = first.await.unwrap() else { panic!("not refused") };
        assert!(error.message.contains("more than 8 MiB"), "{error}");
    }

    #[tokio::test]
    async fn requests_fail_when_the_connection_ends() {
        let (peer, mut reader, theirs, _ours) = pair();
        let waits = tokio::spawn({
            let peer = peer.clone();
            async move { peer.request("a", &Value::Null).await }
        });
        tokio::task::yield_now().await;
        drop(theirs);
        assert_eq!(reader.next().await, None);
        drop(reader);
        assert_eq!(waits.await.unwrap(), Err(RequestError::Closed));
        assert_eq!(peer.request("b", &Value::Null).await, Err(RequestError::Closed));
    }
}
