//! The connection that receives events: twilight's shard, which sends heartbeats, identifies, resumes, and detects dead
//! connections.
//!
//! There is one connection at a time. [`crate::supervise`] reconnects; this module decides where a session resumes:
//! after the last stored event, so that Discord sends all later events again. The next process resumes at the same
//! position (see [`super::session`]).

use super::{
    account_state::DiscordIdentity,
    facts::{Closed, closed},
    relay::Relay,
    session::GatewaySession,
    wire::{GatewayFrame, Ready},
};
use crate::supervise::ConnectionEnd;
use futures_util::{FutureExt, StreamExt};
use pudu_net::proxy::ProxySettings;
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};
use twilight_gateway::{
    CloseFrame, Config, ConfigBuilder, Intents, Message, Session, Shard, ShardId, queue::Queue,
};
use url::Url;

/// Gateway intents: the events that the bot subscribes to.
const INTENTS: Intents = Intents::GUILDS
    .union(Intents::GUILD_MESSAGES)
    .union(Intents::DIRECT_MESSAGES)
    .union(Intents::MESSAGE_CONTENT);
/// Maximum silence of a live connection. Discord answers a heartbeat at least every 41 seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout for connecting and identifying.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(40);
/// Maximum size of a frame, in bytes. The description of a very large server is several megabytes.
const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;

/// Connects to the gateway.
pub(super) struct GatewayConnector {
    config: Config<ImmediateQueue>,
    /// The session to resume.
    session: Option<GatewaySession>,
}

/// Lets the only shard identify at once. Twilight's own queue would need a background task.
#[derive(Clone, Copy, Debug)]
struct ImmediateQueue;

impl Queue for ImmediateQueue {
    fn enqueue(&self, _: u32) -> oneshot::Receiver<()> {
        let (go, allowed) = oneshot::channel();
        // Fails only if the receiver no longer waits.
        go.send(()).ok();
        allowed
    }
}

/// An open connection.
pub(super) struct GatewayConnection {
    shard: Shard<ImmediateQueue>,
    silent: Instant,
    /// The relay through a proxy, if there is one.
    relay: Option<Relay>,
}

/// A message from the gateway.
#[derive(Debug)]
pub(super) enum GatewayEvent {
    Event(DispatchEvent),
    /// A frame without an event. It shows that the connection is alive.
    Nothing,
}

#[derive(Debug)]
pub(super) struct DispatchEvent {
    /// Sequence number of the event in the session.
    pub(super) seq: u64,
    pub(super) kind: String,
    pub(super) data: serde_json::Value,
}

impl GatewayConnector {
    /// Creates the connector. Needs a runtime. Twilight panics if the system has no certificates; the HTTP client,
    /// which was created before, would have reported that.
    pub(super) fn new(token: &SecretString) -> Self {
        pudu_net::install_crypto();
        let config =
            ConfigBuilder::new(token.expose_secret().to_owned(), INTENTS).queue(ImmediateQueue).build();
        Self { config, session: None }
    }

    /// Restores the session of the previous process.
    pub(super) fn restore(&mut self, session: GatewaySession) {
        self.session = Some(session);
    }

    /// Returns the session to resume.
    pub(super) fn session(&self) -> Option<&GatewaySession> {
        self.session.as_ref()
    }

    /// Returns whether a session can be resumed.
    pub(super) fn resumes(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the URL for resuming the session.
    pub(super) fn address(&self) -> Option<String> {
        self.session.as_ref()?.url.clone()
    }

    /// Connects to `url`. Resumes the session, if there is one.
    pub(super) async fn connect(&self, url: &str) -> Result<GatewayConnection, ConnectionEnd> {
        let lost = |error: &dyn std::fmt::Display| ConnectionEnd::Lost(error.to_string());
        let url = address(url)?;
        let parsed = Url::parse(&url).map_err(|error| lost(&error))?;
        let relay = Relay::open(ProxySettings::in_force(), &parsed).await.map_err(|error| lost(&error))?;
        let url = relay.as_ref().map_or(url, |relay| relay.url.clone());
        let mut config = ConfigBuilder::from(self.config.clone()).proxy_url(url.clone());
        if let Some(kept) = &self.session {
            config = config.session(Session::new(kept.seq, kept.id.clone())).resume_url(url);
        }
        let shard = Shard::with_config(ShardId::ONE, config.build());
        Ok(GatewayConnection { shard, silent: Instant::now() + CONNECT_TIMEOUT, relay })
    }

    /// Records that a new session began.
    pub(super) fn began(&mut self, ready: &Ready, me: DiscordIdentity, seq: u64) {
        // Twilight does not validate URLs, so an invalid one is dropped here.
        let url = address(&ready.resume_gateway_url).ok();
        let id = ready.session_id.clone();
        self.session = Some(GatewaySession {
            id,
            seq,
            url,
            me,
            needs_catchup: true,
            received_until: 0,
            unplaced: Vec::new(),
        });
    }

    /// Records that an event was stored or does not concern the bot: the session resumes after it.
    pub(super) fn kept(&mut self, seq: u64) {
        if let Some(session) = &mut self.session {
            session.seq = session.seq.max(seq);
        }
    }

    /// Updates the session after the connection ended.
    pub(super) fn disconnected(&mut self, disconnect: &Disconnect) {
        if disconnect.session_ended {
            self.session = None;
        } else if disconnect.unreachable
            && let Some(session) = &mut self.session
        {
            session.url = None;
        }
    }
}

/// Returns a URL in twilight's form: absolute, without a trailing slash.
fn address(url: &str) -> Result<String, ConnectionEnd> {
    let lost = || ConnectionEnd::Lost("Discord returned no valid gateway URL".to_owned());
    let url = Url::parse(url).map_err(|_| lost())?;
    if !matches!(url.scheme(), "ws" | "wss") || url.host_str().is_none() || url.query().is_some() {
        return Err(lost());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

impl GatewayConnection {
    /// Waits for the next event. The error describes how the connection ended, and the effect on the session.
    pub(super) async fn next(&mut self) -> Result<GatewayEvent, Disconnect> {
        let Ok(next) = timeout_at(self.silent, self.shard.next()).await else {
            return Err(Disconnect::lost("the connection went silent"));
        };
        self.silent = Instant::now() + IDLE_TIMEOUT;
        match next {
            Some(Ok(Message::Text(text))) => read(&text),
            Some(Ok(Message::Close(frame))) => {
                Err(Disconnect::from_close_code(frame.map(|frame| frame.code)))
            }
            // The error quotes parts of an event or a URL, which must not be logged.
            Some(Err(error))
                if matches!(error.kind(), twilight_gateway::error::ReceiveMessageErrorType::Reconnect) =>
            {
                let why =
                    self.relay.as_ref().and_then(Relay::failure).unwrap_or("no connection to the gateway");
                Err(Disconnect { unreachable: true, ..Disconnect::lost(why) })
            }
            Some(Err(_)) => Ok(GatewayEvent::Nothing),
            None => Err(Disconnect::lost("the connection ended")),
        }
    }

    /// Closes the connection so that the session can be resumed: Discord keeps events until then.
    pub(super) fn leave(mut self) {
        self.shard.close(CloseFrame::RESUME);
        // One poll sends the close frame. Further polls would make twilight reconnect.
        self.shard.next().now_or_never();
    }
}

/// How a connection ended, and whether its session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disconnect {
    pub(super) ended: ConnectionEnd,
    pub(super) session_ended: bool,
    /// Whether the server was unreachable: the URL may no longer be valid.
    pub(super) unreachable: bool,
}

impl Disconnect {
    pub(super) fn lost(why: &str) -> Self {
        Self::new(ConnectionEnd::Lost(why.to_owned()), false)
    }

    fn new(ended: ConnectionEnd, session_ended: bool) -> Self {
        Self { ended, session_ended, unreachable: false }
    }

    fn from_close_code(code: Option<u16>) -> Self {
        let why = match code {
            Some(1006) | None => "the connection broke".to_owned(),
            Some(code) => format!("Discord closed the connection ({code})"),
        };
        match closed(code) {
            Closed::Resume => Self::new(ConnectionEnd::Lost(why), false),
            Closed::NewSession => Self::new(ConnectionEnd::Lost(why), true),
            Closed::Fatal(error) => Self::new(ConnectionEnd::Fatal(error), true),
        }
    }
}

/// Parses a frame. Invalid frames are skipped.
fn read(text: &str) -> Result<GatewayEvent, Disconnect> {
    if text.len() > MAX_FRAME_BYTES {
        tracing::warn!(bytes = text.len(), "dropped frame: too large");
        return Ok(GatewayEvent::Nothing);
    }
    let Ok(frame) = crate::lenient::from_bytes::<GatewayFrame>(text.as_bytes()) else {
        tracing::warn!(bytes = text.len(), "dropped frame: decode error");
        return Ok(GatewayEvent::Nothing);
    };
    match (frame.op, frame.s, frame.t) {
        (0, Some(seq), Some(kind)) => Ok(GatewayEvent::Event(DispatchEvent { seq, kind, data: frame.d })),
        (7, ..) => Err(Disconnect::new(ConnectionEnd::Renew, false)),
        (9, ..) if frame.d == true => Err(Disconnect::new(ConnectionEnd::Renew, false)),
        (9, ..) => {
            Err(Disconnect::new(ConnectionEnd::Later("Discord ended the session".to_owned(), pause()), true))
        }
        _ => Ok(GatewayEvent::Nothing),
    }
}

/// Returns the random delay that Discord requires between an invalidated session and the next one.
fn pause() -> Duration {
    Duration::from_millis(fastrand::u64(1000..5000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read_event(frame: &serde_json::Value) -> Result<Option<(u64, String)>, Disconnect> {
        read(&frame.to_string()).map(|heard| match heard {
            GatewayEvent::Event(event) => Some((event.seq, event.kind)),
            GatewayEvent::Nothing => None,
        })
    }

    #[test]
    fn frames_are_read() {
        let renew = || Err(Disconnect::new(ConnectionEnd::Renew, false));
        let cases = [
            (
                json!({"op": 0, "s": 3, "t": "MESSAGE_CREATE", "d": {}}),
                Ok(Some((3, "MESSAGE_CREATE".to_owned()))),
            ),
            (json!({"op": 0, "s": 3, "t": "NEW_KIND", "d": null}), Ok(Some((3, "NEW_KIND".to_owned())))),
            (json!({"op": 0, "t": "NO_NUMBER", "d": {}}), Ok(None)),
            (json!({"op": 11}), Ok(None)),
            (json!({"op": 99, "d": [1]}), Ok(None)),
            (json!({"op": 7, "d": null}), renew()),
            (json!({"op": 9, "d": true}), renew()),
            (json!([]), Ok(None)),
            (json!({"op": "x"}), Ok(None)),
        ];
        for (frame, expected) in cases {
            assert_eq!(read_event(&frame), expected, "{frame}");
        }
        let over = read_event(&json!({"op": 9, "d": false})).unwrap_err();
        assert!(
            over.session_ended && matches!(over.ended, ConnectionEnd::Later(_, pause) if pause.as_secs() < 5),
            "{over:?}"
        );
    }

    #[test]
    fn only_gateway_urls_are_accepted() {
        let cases = [
            ("wss://gateway.discord.gg", Some("wss://gateway.discord.gg")),
            ("ws://127.0.0.1:81/gateway/", Some("ws://127.0.0.1:81/gateway")),
            ("https://gateway.discord.gg", None),
            ("wss://x?y=1", None),
            ("wss:// x", None),
            ("", None),
        ];
        for (url, expected) in cases {
            assert_eq!(address(url).ok().as_deref(), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn a_session_resumes_after_the_last_stored_event() {
        let mut gateway = GatewayConnector::new(&"token".into());
        assert!(!gateway.resumes());
        let ready = json!({"session_id": "a", "resume_gateway_url": "ws://x", "user": {"id": "1"}});
        let me = DiscordIdentity { user: "1".into(), application: "1".into(), name: "pudu".into() };
        gateway.began(&serde_json::from_value(ready).unwrap(), me.clone(), 1);
        for seq in [2, 5, 3] {
            gateway.kept(seq);
        }
        let (id, url) = ("a".into(), Some("ws://x".into()));
        assert_eq!(
            gateway.session,
            Some(GatewaySession {
                id,
                seq: 5,
                url,
                me,
                needs_catchup: true,
                received_until: 0,
                unplaced: Vec::new()
            })
        );
        let link = gateway.connect(&gateway.address().unwrap()).await.unwrap();
        assert_eq!(link.shard.session().map(Session::sequence), Some(5));
        assert_eq!(link.shard.resume_url(), Some("ws://x"));
        gateway.disconnected(&Disconnect { unreachable: true, ..Disconnect::lost("x") });
        assert_eq!((gateway.address(), gateway.resumes()), (None, true), "the URL is requested again");
        gateway.disconnected(&Disconnect::new(ConnectionEnd::Renew, true));
        assert!(gateway.connect("ws://y").await.unwrap().shard.session().is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn arbitrary_frames_never_panic(text in ".{0,200}", op in 0u64..12, data in ".{0,40}") {
            let _ = read(&text);
            let _ = read(&format!("{{\"op\":{op},\"s\":1,\"t\":\"X\",\"d\":\"{}\"}}", data.escape_default()));
        }
    }
}
