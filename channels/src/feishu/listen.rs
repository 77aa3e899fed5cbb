//! Receives events over the long connection. Each connection has an address of its own, which is good once;
//! the platform sends each event to one of an app's connections.
//!
//! An event is acknowledged when it is kept, and comes again if it is not. Neither the content of one event nor its
//! duration holds up the others.

use super::{
    FeishuChannel, FeishuEventMode,
    event::EventEnvelope,
    event_parser::FeishuEventParser,
    failure::FeishuError,
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

/// Maximum number of events being stored at a time; more stay in the socket.
const MAX_CONCURRENT_EVENTS: usize = 64;
/// Ping interval of the socket, and the silence after which it is dead.
const KEEPALIVE: Keepalive = Keepalive { ping: Duration::from_secs(20), idle: Duration::from_secs(65) };
/// An app may have 50 connections. Where there are too many, another is tried after this.
const TOO_MANY: Duration = Duration::from_secs(60);
/// How often the token is looked at where there is no connection.
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

    /// Stays while Feishu posts. No connection shows when the app's secret becomes invalid: the token is checked now
    /// and then, which requests another one only if the last is old or was refused.
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

    /// Learns who the bot is, once.
    pub(super) async fn learn_me(&self) -> Result<(), ConnectionEnd> {
        if self.me.get().is_some() {
            return Ok(());
        }
        let told = self.state.client.call_top("bot/v3/info").await.map_err(|failure| ended(&failure))?;
        let me = told.get("bot").and_then(|bot| bot["open_id"].as_str()).filter(|id| !id.is_empty());
        let why =
            || "the app has no bot: add the bot ability in the developer console, and publish a version";
        let me = me.ok_or_else(|| ConnectionEnd::Fatal(ChannelError::Config(why().to_owned())))?;
        // The first answer stays: an app's bot does not change.
        let _ = self.me.set(me.to_owned());
        Ok(())
    }

    /// Asks where the connection is, and opens it.
    async fn open(&self) -> Result<(Socket, Protocol, Duration), ConnectionEnd> {
        let told = self.state.client.endpoint().await.map_err(|failure| refused_endpoint(&failure))?;
        let url = told["URL"].as_str().unwrap_or_default();
        let lost = |why: &str| ConnectionEnd::Lost(why.to_owned());
        let parsed =
            Url::parse(url).map_err(|_| lost("the platform gave no address for the long connection"))?;
        let service = parsed.query_pairs().find(|(name, _)| name == "service_id");
        let service = service.and_then(|(_, id)| id.parse().ok());
        let service = service.ok_or_else(|| lost("the long connection's address names no service"))?;
        let ping = ping_of(&told["ClientConfig"]).unwrap_or(PING);
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
    /// When the platform, not only the line, last said something.
    heard: Instant,
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
        Self { socket, protocol, ping, next_ping: now, heard: now, parser, sink }
    }

    async fn serve(mut self, stop: &CancellationToken) -> ConnectionEnd {
        let ended = self.read_until_end(stop).await;
        if stop.is_cancelled() {
            // Without a goodbye the platform sends events here for a while.
            self.socket.close().await;
        }
        ended
    }

    async fn read_until_end(&mut self, stop: &CancellationToken) -> ConnectionEnd {
        let mut keeping = FuturesUnordered::new();
        loop {
            // Three pings without an answer.
            let deaf = self.heard + self.ping * 3;
            let sent = tokio::select! {
                biased;
                () = stop.cancelled() => return ConnectionEnd::Renew,
                Some(acknowledgement) = keeping.next() => self.socket.send_binary(acknowledgement).await,
                () = sleep_until(self.next_ping) => {
                    self.next_ping = Instant::now() + self.ping;
                    self.socket.send_binary(self.protocol.ping()).await
                }
                () = sleep_until(deaf) => return ConnectionEnd::Lost("the platform answers no pings".to_owned()),
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

    /// Takes a frame; returns an event that is whole.
    fn on_frame(&mut self, bytes: &[u8]) -> Option<FeishuDelivery> {
        let now = Instant::now();
        self.heard = now;
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

/// Keeps an event and makes its acknowledgement.
async fn keep(parser: FeishuEventParser, delivery: FeishuDelivery, sink: &dyn EventSink) -> Vec<u8> {
    let began = Instant::now();
    let answer = match crate::lenient::from_bytes::<EventEnvelope>(&delivery.payload) {
        Ok(event) => match parser.on_event(&event, sink).await {
            Ok(told) => {
                parser.health.kept();
                Ok(told)
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

/// Maps a failed call to how the connection ended.
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

/// The endpoint has codes of its own: some pass, the others need a person's hand.
fn refused_endpoint(failure: &FeishuError) -> ConnectionEnd {
    match (failure, failure.code()) {
        (_, Some(403 | 514)) => ConnectionEnd::Fatal(ChannelError::Auth(failure.to_string())),
        // Something on the way refuses.
        (CallError::Refused(why), _) => ConnectionEnd::Lost(why.clone()),
        _ => match ended(failure) {
            ConnectionEnd::Fatal(ChannelError::Config(why)) => {
                let why = format!("{why}: is the long connection chosen in the developer console?");
                ConnectionEnd::Fatal(ChannelError::Config(why))
            }
            other => other,
        },
    }
}

/// The reason of a refused handshake is in headers.
fn refused_socket(error: &SocketError) -> ConnectionEnd {
    let SocketError::Refused { headers, .. } = error else { return ConnectionEnd::Lost(error.to_string()) };
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    };
    let told = header("handshake-msg");
    match (header("handshake-status"), header("handshake-autherrcode")) {
        ("514", "1000040350") => ConnectionEnd::Later(format!("{told}: who else uses this app?"), TOO_MANY),
        ("403", _) => ConnectionEnd::Fatal(ChannelError::Auth(told.to_owned())),
        (status, _) => ConnectionEnd::Lost(format!("{error}: {told} {status}").trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Channel, HealthState,
        feishu::{
            FeishuConfig,
            failure::{failure, unreadable},
        },
    };
    use axum::{Json, Router, extract::Request};
    use pudu_net::reqwest::Method;
    use serde_json::json;
    use std::sync::atomic::{AtomicBool, Ordering};

    static GOOD: AtomicBool = AtomicBool::new(true);

    /// A platform that gives one token, and nothing after.
    async fn take(request: Request) -> Json<Value> {
        let token = request.uri().path().ends_with("internal");
        Json(match token && GOOD.swap(false, Ordering::Relaxed) {
            true => json!({"code": 0, "tenant_access_token": "t-1", "expire": 7200}),
            false if token => json!({"code": 10_014, "msg": "app secret invalid"}),
            false => json!({"code": 99_991_663, "msg": "Invalid access token"}),
        })
    }

    #[tokio::test]
    async fn a_secret_that_is_not_good_any_more_is_noticed_without_a_connection() {
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
    fn what_passes_is_tried_again_and_what_does_not_ends_it() {
        let auth = |why: &str| ConnectionEnd::Fatal(ChannelError::Auth(why.into()));
        let lost = |why: &str| ConnectionEnd::Lost(why.into());
        let cases = [
            (failure(200, 1, "system busy", None), lost("system busy (code 1)")),
            (failure(200, 1_000_040_343, "internal", None), lost("internal (code 1000040343)")),
            (failure(200, 514, "auth failed", None), auth("auth failed (code 514)")),
            (failure(200, 403, "forbidden", None), auth("forbidden (code 403)")),
            (unreadable(502, None), lost("an answer that cannot be read (HTTP 502)")),
        ];
        for (failure, expected) in cases {
            assert_eq!(refused_endpoint(&failure), expected);
        }
        let other = refused_endpoint(&failure(200, 1_000_040_344, "no", None));
        assert!(matches!(other, ConnectionEnd::Fatal(ChannelError::Config(_))));
    }

    #[test]
    fn a_refused_handshake_says_in_headers_what_it_means() {
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
