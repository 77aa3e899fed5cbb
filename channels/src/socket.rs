//! One WebSocket to a platform: connected within a bound, frames of bounded size, pings, and a watchdog that
//! takes a peer which says nothing for dead.
//!
//! Deliberately absent: any platform's protocol, and connecting again (see [`crate::supervise`]).

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

/// How long it may take to connect.
const CONNECT: Duration = Duration::from_secs(15);
/// How long a frame may take on its way out.
const SEND: Duration = Duration::from_secs(15);
/// How long sending the close frame may take. The peer's answer to it is not awaited: some never close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of a message, in bytes. Platforms' events have some hundred kilobytes, and a few have
/// megabytes; one that is not taken ends the connection, and comes again over the next.
const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;

/// Keep-alive settings of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keepalive {
    /// How often the peer is pinged.
    pub(crate) ping: Duration,
    /// Timeout after which a silent peer is dead: it has not sent even a pong.
    pub(crate) idle: Duration,
}

/// A connection.
pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<HostStream>>,
    pulse: Keepalive,
    next_ping: Instant,
    heard: Instant,
    /// The same by the clock, which continues while this machine sleeps, in milliseconds since 1970.
    heard_at: i64,
}

/// A frame from the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocketFrame {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// Goodbye: code and reason.
    Close(Option<(u16, String)>),
}

/// Why there is no connection, without the URL, which contains secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SocketError {
    /// The handshake was refused.
    #[error("the handshake was refused (HTTP {status})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The headers that the platform answered, for its own codes.
        headers: Vec<(String, String)>,
    },
    /// It did not come about, or it broke.
    #[error("{0}")]
    Lost(String),
    /// The peer said nothing for too long.
    #[error("the connection went silent")]
    Silent,
}

impl Socket {
    /// Connects to a `ws` or `wss` URL, by the proxy that the environment names for it.
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
            // At the finest level libraries log addresses and frames, which contain secrets.
            let handshake = client_async_tls_with_config(url, stream, Some(config), tls);
            handshake.with_subscriber(NoSubscriber::new()).await.map_err(refused)
        };
        let connected = timeout(CONNECT, connect).await;
        let (stream, _) = connected.map_err(|_| lost("no connection in time"))??;
        let now = Instant::now();
        Ok(Self { stream, pulse, next_ping: now + pulse.ping, heard: now, heard_at: clock::now() })
    }

    /// Waits for the peer's next frame. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Result<SocketFrame, SocketError> {
        loop {
            let dead = self.heard + self.pulse.idle;
            tokio::select! {
                biased;
                message = self.stream.next().with_subscriber(NoSubscriber::new()) => {
                    self.heard = Instant::now();
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

    /// Returns when the peer said something last, be it a pong, in milliseconds since 1970.
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
        // A peer that is gone needs no goodbye.
        timeout(CLOSE_TIMEOUT, self.stream.close(Some(frame)).with_subscriber(NoSubscriber::new()))
            .await
            .ok();
    }

    async fn put(&mut self, message: Message) -> Result<(), SocketError> {
        match timeout(SEND, self.stream.send(message).with_subscriber(NoSubscriber::new())).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(lost(describe(&error))),
            Err(_) => Err(lost("the peer takes nothing any more")),
        }
    }
}

/// Connects to the host of a URL.
async fn connect_to_host(rules: &ProxySettings, url: &str) -> Result<HostStream, SocketError> {
    let unfit = || lost("the address is not one of a WebSocket");
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

/// Describes an error without parts of the URL that it may quote.
fn describe(error: &tungstenite::Error) -> String {
    match error {
        tungstenite::Error::Url(_) => "the address is not one of a WebSocket".to_owned(),
        tungstenite::Error::Capacity(_) => "a message is too large".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
