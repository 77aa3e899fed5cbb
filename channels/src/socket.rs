//! One WebSocket to a platform, with timeouts, a size limit for messages, pings, and a watchdog that detects a silent
//! peer.
//!
//! Deliberately absent: any platform's protocol, and reconnecting (see [`crate::supervise`]).

use crate::clock;
use futures_util::{SinkExt, StreamExt};
use pudu_net::proxy::{HostError, HostStream, ProxySettings};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config,
    tungstenite::{
        self, Message,
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};
use url::Url;

/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(15);
/// Timeout for sending a frame.
const SEND: Duration = Duration::from_secs(15);
/// Timeout for sending the close frame. The peer's answer is not awaited, because some peers never send one.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of a message, in bytes. Events have a few hundred kilobytes, rarely several megabytes. A larger message
/// ends the connection, and is redelivered over the next one.
const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;

/// Keep-alive settings of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keepalive {
    /// Interval of pings.
    pub(crate) ping: Duration,
    /// How long the peer may be silent, without even a pong, before it counts as dead.
    pub(crate) idle: Duration,
}

/// A connection.
pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<HostStream>>,
    pulse: Keepalive,
    next_ping: Instant,
    last_activity: Instant,
    /// `last_activity` by the system clock, which continues while the machine sleeps, in milliseconds since 1970.
    heard_at: i64,
}

/// A frame from the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocketFrame {
    /// A text frame.
    Text(String),
    /// A binary frame.
    Binary(Vec<u8>),
    /// A close frame: code and reason.
    Close(Option<(u16, String)>),
}

/// Why there is no connection. Does not contain the URL, which contains secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SocketError {
    /// The handshake was refused.
    #[error("the handshake was refused (HTTP {status})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Response headers, which may contain the platform's own codes.
        headers: Vec<(String, String)>,
    },
    /// Connecting failed, or the connection broke.
    #[error("{0}")]
    Lost(String),
    /// The peer was silent for too long.
    #[error("the connection went silent")]
    Silent,
}

impl Socket {
    /// Connects to a `ws` or `wss` URL, through the proxy that the environment configures for it.
    pub(crate) async fn connect(url: &str, pulse: Keepalive) -> Result<Self, SocketError> {
        Self::connect_by(&ProxySettings::in_force(), url, pulse).await
    }

    async fn connect_by(rules: &ProxySettings, url: &str, pulse: Keepalive) -> Result<Self, SocketError> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let tls = pudu_net::tls().map(|tls| Connector::Rustls(Arc::new(tls)));
        let connect = async {
            let stream = connect_to_host(rules, url).await?;
            // At the most verbose level, libraries log URLs and frames, which contain secrets.
            let handshake = client_async_tls_with_config(url, stream, Some(config), tls);
            handshake.with_subscriber(NoSubscriber::new()).await.map_err(refused)
        };
        let connected = timeout(CONNECT, connect).await;
        let (stream, _) = connected.map_err(|_| lost("connecting timed out"))??;
        let now = Instant::now();
        Ok(Self { stream, pulse, next_ping: now + pulse.ping, last_activity: now, heard_at: clock::now() })
    }

    /// Waits for the peer's next frame. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<SocketFrame, SocketError> {
        loop {
            let dead = self.last_activity + self.pulse.idle;
            tokio::select! {
                biased;
                message = self.stream.next().with_subscriber(NoSubscriber::new()) => {
                    self.last_activity = Instant::now();
                    if let Some(Ok(_)) = message {
                        self.heard_at = clock::now();
                    }
                    match message {
                        Some(Ok(Message::Text(text))) => return Ok(SocketFrame::Text(text.as_str().to_owned())),
                        Some(Ok(Message::Binary(bytes))) => return Ok(SocketFrame::Binary(bytes.to_vec())),
                        Some(Ok(Message::Close(frame))) => {
                            let reason = frame.map(|frame| (frame.code.into(), frame.reason.as_str().to_owned()));
                            return Ok(SocketFrame::Close(reason));
                        }
                        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                        Some(Err(error)) => return Err(lost(describe(&error))),
                        None => return Err(lost("the connection was closed")),
                    }
                }
                () = sleep_until(dead) => return Err(SocketError::Silent),
                () = sleep_until(self.next_ping) => {
                    self.next_ping = Instant::now() + self.pulse.ping;
                    self.put(Message::Ping(tungstenite::Bytes::new())).await?;
                }
            }
        }
    }

    /// Returns when the peer last sent anything, including a pong, in milliseconds since 1970.
    pub(crate) fn last_received_at(&self) -> i64 {
        self.heard_at
    }

    /// Sends a text frame.
    pub(crate) async fn send_text(&mut self, text: String) -> Result<(), SocketError> {
        self.put(Message::text(text)).await
    }

    /// Sends a binary frame.
    pub(crate) async fn send_binary(&mut self, bytes: Vec<u8>) -> Result<(), SocketError> {
        self.put(Message::binary(bytes)).await
    }

    /// Closes the connection, so that the platform sends no more events here.
    pub(crate) async fn close(mut self) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        // An error only means that the peer is already gone.
        timeout(CLOSE_TIMEOUT, self.stream.close(Some(frame)).with_subscriber(NoSubscriber::new()))
            .await
            .ok();
    }

    async fn put(&mut self, message: Message) -> Result<(), SocketError> {
        match timeout(SEND, self.stream.send(message).with_subscriber(NoSubscriber::new())).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(lost(describe(&error))),
            Err(_) => Err(lost("the peer no longer accepts data")),
        }
    }
}

/// Connects to the host of a URL.
async fn connect_to_host(rules: &ProxySettings, url: &str) -> Result<HostStream, SocketError> {
    let unfit = || lost("the URL is not a WebSocket URL");
    let url = Url::parse(url).map_err(|_| unfit())?;
    let (host, port) = url.host_str().zip(url.port_or_known_default()).ok_or_else(unfit)?;
    let connected = rules.connect(host, port, url.scheme() == "wss").await;
    connected.map_err(|error: HostError| lost(error.to_string()))
}

fn lost(why: impl Into<String>) -> SocketError {
    SocketError::Lost(why.into())
}

fn refused(error: tungstenite::Error) -> SocketError {
    let tungstenite::Error::Http(response) = error else { return lost(describe(&error)) };
    let header = |(name, value): (&tungstenite::http::HeaderName, &tungstenite::http::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    SocketError::Refused {
        status: response.status().as_u16(),
        headers: response.headers().iter().map(header).collect(),
    }
}

/// Describes an error, without the parts of the URL that it may quote.
fn describe(error: &tungstenite::Error) -> String {
    match error {
        tungstenite::Error::Url(_) => "the URL is not a WebSocket URL".to_owned(),
        tungstenite::Error::Capacity(_) => "a message is too large".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
