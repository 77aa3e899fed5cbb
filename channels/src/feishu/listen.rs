//! Receives events over the long connection. Each connection needs a new URL, which is valid once. The platform sends
//! each event to one of an app's connections.
//!
//! An event is acknowledged when it is stored, and is redelivered if it is not. Neither the content of an event nor the
//! time it takes delays other events.

use super::{
    FeishuChannel, FeishuEventMode,
    event::EventEnvelope,
    event_parser::FeishuEventParser,
    facts::FeishuError,
    protocol::{FeishuDelivery, PING, Protocol, ProtocolStep},
};
use crate::{
    ChannelError, EventSink,
    socket::{Keepalive, Socket, SocketError, SocketFrame},
    supervise::{ConnectionEnd, supervise},
    transport::CallError,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use url::Url;

/// Maximum number of events being stored concurrently. Further events stay in the socket.
const MAX_CONCURRENT_EVENTS: usize = 64;
/// Ping interval of the socket, and how long it may be silent before it counts as dead.
const KEEPALIVE: Keepalive = Keepalive { ping: Duration::from_secs(20), idle: Duration::from_secs(65) };
/// Delay before reconnecting if there are too many connections. An app may have 50.
const TOO_MANY: Duration = Duration::from_secs(60);
/// Interval between checks of the token in webhook mode.
const TOKEN: Duration = Duration::from_secs(60);

impl FeishuChannel {
    pub(super) async fn receive(
        &self,
        sink: &dyn EventSink,
        stop: CancellationToken,
    ) -> Result<(), ChannelError> {
        let listen = || async {
            match Box::pin(self.connect(sink, &stop)).await {
                Ok(ended) | Err(ended) => ended,
            }
        };
        supervise(&self.health, &stop, listen).await
    }

    async fn connect(
        &self,
        sink: &dyn EventSink,
        stop: &CancellationToken,
    ) -> Result<ConnectionEnd, ConnectionEnd> {
        let started = stop.run_until_cancelled(self.learn_me()).await;
        let Some(started) = started else { return Ok(ConnectionEnd::Renew) };
        started?;
        if let FeishuEventMode::Webhook { .. } = self.config.mode {
            return self.wait_for_webhook(stop, TOKEN).await;
        }
        let opened = stop.run_until_cancelled(self.open()).await;
        let Some(opened) = opened else { return Ok(ConnectionEnd::Renew) };
        let (socket, protocol, ping) = opened?;
        self.log_connected("by long connection");
        Ok(FeishuConnection::new(socket, protocol, ping, self.parser(), sink).serve(stop).await)
    }

    /// Runs in webhook mode until `stop`. Without a connection, nothing shows that the app's secret became invalid, so
    /// the token is checked regularly. A new token is requested only if the last one is old or was refused.
    async fn wait_for_webhook(
        &self,
        stop: &CancellationToken,
        pause: Duration,
    ) -> Result<ConnectionEnd, ConnectionEnd> {
        let mut known = false;
        loop {
            let token = stop.run_until_cancelled(self.state.client.token()).await;
            let Some(token) = token else { return Ok(ConnectionEnd::Renew) };
            token.map_err(|failure| ended(&failure))?;
            if !std::mem::replace(&mut known, true) {
                self.log_connected("by webhook");
            }
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return Ok(ConnectionEnd::Renew);
            }
        }
    }

    fn log_connected(&self, how: &str) {
        self.health.ready();
        tracing::info!(account = self.config.account, how, "connected to Feishu");
    }

    /// Fetches the bot's identity, once.
    pub(super) async fn learn_me(&self) -> Result<(), ConnectionEnd> {
        if self.me.get().is_some() {
            return Ok(());
        }
        let response = self.state.client.call_top("bot/v3/info").await.map_err(|failure| ended(&failure))?;
        let me = response.get("bot").and_then(|bot| bot["open_id"].as_str()).filter(|id| !id.is_empty());
        let why =
            || "the app has no bot: add the Bot ability in the developer console, and publish a version";
        let me = me.ok_or_else(|| ConnectionEnd::Fatal(ChannelError::Config(why().to_owned())))?;
        // Never overwritten: an app always has the same bot.
        let _ = self.me.set(me.to_owned());
        Ok(())
    }

    /// Fetches the endpoint and opens a connection.
    async fn open(&self) -> Result<(Socket, Protocol, Duration), ConnectionEnd> {
        let response = self.state.client.endpoint().await.map_err(|failure| refused_endpoint(&failure))?;
        let url = response["URL"].as_str().unwrap_or_default();
        let lost = |why: &str| ConnectionEnd::Lost(why.to_owned());
        let parsed =
            Url::parse(url).map_err(|_| lost("the platform returned no URL for the long connection"))?;
        let service = parsed.query_pairs().find(|(name, _)| name == "service_id");
        let service = service.and_then(|(_, id)| id.parse().ok());
        let service = service.ok_or_else(|| lost("the URL of the long connection contains no service id"))?;
        let ping = ping_of(&response["ClientConfig"]).unwrap_or(PING);
        let socket =
            Box::pin(Socket::connect(url, KEEPALIVE)).await.map_err(|error| refused_socket(&error))?;
        Ok((socket, Protocol::new(service), ping))
    }
}

fn ping_of(config: &Value) -> Option<Duration> {
    serde_json::from_value::<super::protocol::ClientConfig>(config.clone()).ok()?.ping()
}

/// An open connection.
struct FeishuConnection<'a> {
    socket: Socket,
    protocol: Protocol,
    ping: Duration,
    next_ping: Instant,
    /// Time of the last frame from the platform. Pongs of the WebSocket itself do not count.
    last_frame: Instant,
    parser: FeishuEventParser,
    sink: &'a dyn EventSink,
}

impl<'a> FeishuConnection<'a> {
    fn new(
        socket: Socket,
        protocol: Protocol,
        ping: Duration,
        parser: FeishuEventParser,
        sink: &'a dyn EventSink,
    ) -> Self {
        let now = Instant::now();
        Self { socket, protocol, ping, next_ping: now, last_frame: now, parser, sink }
    }

    async fn serve(mut self, stop: &CancellationToken) -> ConnectionEnd {
        let ended = self.read_until_end(stop).await;
        if stop.is_cancelled() {
            // Without a close frame, the platform would still send events here for a while.
            self.socket.close().await;
        }
        ended
    }

    async fn read_until_end(&mut self, stop: &CancellationToken) -> ConnectionEnd {
        let mut keeping = FuturesUnordered::new();
        loop {
            // Three unanswered pings.
            let deadline = self.last_frame + self.ping * 3;
            let sent = tokio::select! {
                biased;
                () = stop.cancelled() => return ConnectionEnd::Renew,
                Some(acknowledgement) = keeping.next() => self.socket.send_binary(acknowledgement).await,
                () = sleep_until(self.next_ping) => {
                    self.next_ping = Instant::now() + self.ping;
                    self.socket.send_binary(self.protocol.ping()).await
                }
                () = sleep_until(deadline) => return ConnectionEnd::Lost("the platform does not answer pings".to_owned()),
                frame = self.socket.next(), if keeping.len() < MAX_CONCURRENT_EVENTS => match frame {
                    Ok(SocketFrame::Binary(bytes)) => {
                        keeping.extend(self.on_frame(&bytes).map(|event| keep(self.parser.clone(), event, self.sink)));
                        Ok(())
                    }
                    Ok(SocketFrame::Text(_)) => Ok(()),
                    Ok(SocketFrame::Close(_)) => return ConnectionEnd::Lost("the platform closed the connection".to_owned()),
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = sent {
                return ConnectionEnd::Lost(error.to_string());
            }
        }
    }

    /// Handles a frame. Returns an event if it is complete.
    fn on_frame(&mut self, bytes: &[u8]) -> Option<FeishuDelivery> {
        let now = Instant::now();
        self.last_frame = now;
        match self.protocol.push(bytes, now) {
            ProtocolStep::Nothing => None,
            ProtocolStep::Pulse(interval) => {
                self.ping = interval.unwrap_or(self.ping);
                self.next_ping = self.next_ping.min(now + self.ping);
                None
            }
            ProtocolStep::Event(delivery) => Some(delivery),
        }
    }
}

/// Stores an event and returns its acknowledgement.
async fn keep(parser: FeishuEventParser, delivery: FeishuDelivery, sink: &dyn EventSink) -> Vec<u8> {
    let began = Instant::now();
    let answer = match crate::lenient::from_bytes::<EventEnvelope>(&delivery.payload) {
        Ok(event) => match parser.on_event(&event, sink).await {
            Ok(response) => {
                parser.health.kept();
                Ok(response)
            }
            Err(refusal) => {
                tracing::warn!(%refusal, "failed to accept event; Feishu sends it again");
                parser.health.not_kept(refusal);
                Err(())
            }
        },
        Err(error) => {
            tracing::warn!(%error, "dropped event: decode error");
            Ok(None)
        }
    };
    delivery.acknowledge(answer, began.elapsed())
}

/// Converts a failed call to the connection's end.
fn ended(failure: &FeishuError) -> ConnectionEnd {
    match failure {
        CallError::Auth(why) => ConnectionEnd::Fatal(ChannelError::Auth(why.clone())),
        CallError::Wait(pause) | CallError::WaitForAll(pause) => {
            ConnectionEnd::Later("Feishu asks to wait".to_owned(), *pause)
        }
        other if other.is_refused() => ConnectionEnd::Fatal(ChannelError::Config(other.to_string())),
        other => ConnectionEnd::Lost(other.to_string()),
    }
}

/// Converts a failure of the endpoint, which has its own codes, to the connection's end.
fn refused_endpoint(failure: &FeishuError) -> ConnectionEnd {
    match (failure, failure.code()) {
        (_, Some(403 | 514)) => ConnectionEnd::Fatal(ChannelError::Auth(failure.to_string())),
        // Refused by an intermediary.
        (CallError::Refused(why), _) => ConnectionEnd::Lost(why.clone()),
        _ => match ended(failure) {
            ConnectionEnd::Fatal(ChannelError::Config(why)) => {
                let why = format!("{why}: choose the long connection in the developer console");
                ConnectionEnd::Fatal(ChannelError::Config(why))
            }
            other => other,
        },
    }
}

/// Converts a refused handshake to the connection's end. The reason is in the headers.
fn refused_socket(error: &SocketError) -> ConnectionEnd {
    let SocketError::Refused { headers, .. } = error else { return ConnectionEnd::Lost(error.to_string()) };
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    };
    let response = header("handshake-msg");
    match (header("handshake-status"), header("handshake-autherrcode")) {
        ("514", "1000040350") => {
            ConnectionEnd::Later(format!("{response}: another process uses this app"), TOO_MANY)
        }
        ("403", _) => ConnectionEnd::Fatal(ChannelError::Auth(response.to_owned())),
        (status, _) => ConnectionEnd::Lost(format!("{error}: {response} {status}").trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Channel, HealthState,
        feishu::{
            FeishuConfig,
            facts::{failure, unreadable},
        },
    };
    use axum::{Json, Router, extract::Request};
    use pudu_net::reqwest::Method;
    use serde_json::json;
    use std::sync::atomic::{AtomicBool, Ordering};

    static GOOD: AtomicBool = AtomicBool::new(true);

    /// A platform that issues one token and then stops answering.
    async fn take(request: Request) -> Json<Value> {
        let token = request.uri().path().ends_with("internal");
        Json(match token && GOOD.swap(false, Ordering::Relaxed) {
            true => json!({"code": 0, "tenant_access_token": "t-1", "expire": 7200}),
            false if token => json!({"code": 10_014, "msg": "app secret invalid"}),
            false => json!({"code": 99_991_663, "msg": "Invalid access token"}),
        })
    }

    #[tokio::test]
    async fn a_revoked_secret_is_noticed_without_a_connection() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let domain = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
        let mode = FeishuEventMode::Webhook { encrypt_key: "k".into(), verification_token: "v".into() };
        let config = FeishuConfig {
            account: "feishu".into(),
            app_id: "cli".into(),
            app_secret: "s".into(),
            domain,
            mode,
            require_mention: true,
            stream_interval: Duration::from_millis(1),
        };
        let (feishu, stop) = (FeishuChannel::new(config).unwrap(), CancellationToken::new());
        let used = async {
            while feishu.health().state != HealthState::Ready {
                tokio::task::yield_now().await;
            }
            feishu.state.client.call(Method::GET, "x", None).await
        };
        let (ended, _) = tokio::join!(feishu.wait_for_webhook(&stop, Duration::from_millis(10)), used);
        assert!(matches!(ended, Err(ConnectionEnd::Fatal(ChannelError::Auth(_)))), "{ended:?}");
    }

    #[test]
    fn temporary_failures_are_retried_and_permanent_ones_are_fatal() {
        let auth = |why: &str| ConnectionEnd::Fatal(ChannelError::Auth(why.into()));
        let lost = |why: &str| ConnectionEnd::Lost(why.into());
        let cases = [
            (failure(200, 1, "system busy", None), lost("system busy (code 1)")),
            (failure(200, 1_000_040_343, "internal", None), lost("internal (code 1000040343)")),
            (failure(200, 514, "auth failed", None), auth("auth failed (code 514)")),
            (failure(200, 403, "forbidden", None), auth("forbidden (code 403)")),
            (unreadable(502, None), lost("an unreadable response (HTTP 502)")),
        ];
        for (failure, expected) in cases {
            assert_eq!(refused_endpoint(&failure), expected);
        }
        let other = refused_endpoint(&failure(200, 1_000_040_344, "no", None));
        assert!(matches!(other, ConnectionEnd::Fatal(ChannelError::Config(_))));
    }

    #[test]
    fn the_headers_of_a_refused_handshake_determine_the_end() {
        let refused = |status: &str, inner: &str| {
            let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            refused_socket(&SocketError::Refused {
                status: 400,
                headers: vec![
                    header("Handshake-Status", status),
                    header("handshake-msg", "no"),
                    header("handshake-autherrcode", inner),
                ],
            })
        };
        assert!(matches!(refused("514", "1000040350"), ConnectionEnd::Later(_, pause) if pause == TOO_MANY));
        assert!(matches!(refused("514", "1"), ConnectionEnd::Lost(_)));
        assert!(matches!(refused("403", ""), ConnectionEnd::Fatal(ChannelError::Auth(_))));
        assert!(matches!(refused("", ""), ConnectionEnd::Lost(_)));
    }
}
