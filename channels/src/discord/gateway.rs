//! The connection over which events come: twilight's shard, which beats, identifies, resumes and notices a
//! connection that has died.
//!
//! It is used for one connection at a time. Connecting again is [`crate::supervise`]'s, and where a session is
//! taken up is ours: at the last event that was kept, so that one which was not comes again. So it is by the next
//! process, too (see [`super::session`]).

use super::{
    account_state::DiscordIdentity,
    failure::{Closed, closed},
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
/// Maximum silence of a live connection. Discord sends something at least every 41 seconds, when it answers a
/// heartbeat.
const SILENCE: Duration = Duration::from_secs(120);
/// How long it may take to connect and to be known.
const HELLO: Duration = Duration::from_secs(40);
/// Maximum size of a frame, in bytes: a very large server describes itself in some megabytes.
const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;

/// How connections to the gateway are made.
pub(super) struct GatewayConnector {
    config: Config<AtOnce>,
    /// The session to resume.
    session: Option<GatewaySession>,
}

/// There is one shard: it may always identify. Twilight's own queue is a task in the background.
#[derive(Clone, Copy, Debug)]
struct AtOnce;

impl Queue for AtOnce {
    fn enqueue(&self, _: u32) -> oneshot::Receiver<()> {
        let (go, told) = oneshot::channel();
        // A receiver that no longer waits needs no answer.
        go.send(()).ok();
        told
    }
}

/// An open connection.
pub(super) struct GatewayConnection {
    shard: Shard<AtOnce>,
    silent: Instant,
    /// The way by a proxy, if there is one.
    relay: Option<Relay>,
}

/// A message from the gateway.
#[derive(Debug)]
pub(super) enum GatewayEvent {
    /// An event.
    Event(DispatchEvent),
    /// A sign of life.
    Nothing,
}

/// An event.
#[derive(Debug)]
pub(super) struct DispatchEvent {
    /// Its number in the session.
    pub(super) seq: u64,
    pub(super) kind: String,
    pub(super) data: serde_json::Value,
}

impl GatewayConnector {
    /// Prepares connections. Needs a runtime. Twilight panics where the system has no certificates; it looks
    /// for them as the HTTP client does, which was made before and would have said so.
    pub(super) fn new(token: &SecretString) -> Self {
        pudu_net::install_crypto();
        let config = ConfigBuilder::new(token.expose_secret().to_owned(), INTENTS).queue(AtOnce).build();
        Self { config, session: None }
    }

    /// Takes up the session of a process before this one.
    pub(super) fn restore(&mut self, session: GatewaySession) {
        self.session = Some(session);
    }

    /// Returns the session to continue.
    pub(super) fn session(&self) -> Option<&GatewaySession> {
        self.session.as_ref()
    }

    /// Returns whether a session can be resumed.
    pub(super) fn resumes(&self) -> bool {
        self.session.is_some()
    }

    /// Returns where the session is taken up that is to go on.
    pub(super) fn address(&self) -> Option<String> {
        self.session.as_ref()?.url.clone()
    }

    /// Begins a connection to `url`; the session continues, if there is one.
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
        Ok(GatewayConnection { shard, silent: Instant::now() + HELLO, relay })
    }

    /// A session began.
    pub(super) fn began(&mut self, ready: &Ready, me: DiscordIdentity, seq: u64) {
        // Twilight takes an address as it is: one that is none is not given to it.
        let url = address(&ready.resume_gateway_url).ok();
        let id = ready.session_id.clone();
        self.session =
            Some(GatewaySession { id, seq, url, me, behind: true, heard: 0, unplaced: Vec::new() });
    }

    /// Records that an event was kept or does not concern the bot: the session continues after it.
    pub(super) fn kept(&mut self, seq: u64) {
        if let Some(session) = &mut self.session {
            session.seq = session.seq.max(seq);
        }
    }

    /// The connection ended.
    pub(super) fn parted(&mut self, parted: &Parted) {
        if parted.over {
            self.session = None;
        } else if parted.nobody
            && let Some(session) = &mut self.session
        {
            session.url = None;
        }
    }
}

/// Returns an address as twilight wants it: whole, without the slash at the end.
fn address(url: &str) -> Result<String, ConnectionEnd> {
    let lost = || ConnectionEnd::Lost("Discord told no address of a gateway".to_owned());
    let url = Url::parse(url).map_err(|_| lost())?;
    if !matches!(url.scheme(), "ws" | "wss") || url.host_str().is_none() || url.query().is_some() {
        return Err(lost());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

impl GatewayConnection {
    /// Waits for the next event. An error contains how the connection ended, and the effect on the session.
    pub(super) async fn next(&mut self) -> Result<GatewayEvent, Parted> {
        let Ok(next) = timeout_at(self.silent, self.shard.next()).await else {
            return Err(Parted::lost("the connection went silent"));
        };
        self.silent = Instant::now() + SILENCE;
        match next {
            Some(Ok(Message::Text(text))) => read(&text),
            Some(Ok(Message::Close(frame))) => Err(Parted::from_close_code(frame.map(|frame| frame.code))),
            // The error quotes parts of an event or an address, which must not be logged.
            Some(Err(error))
                if matches!(error.kind(), twilight_gateway::error::ReceiveMessageErrorType::Reconnect) =>
            {
                let why =
                    self.relay.as_ref().and_then(Relay::failure).unwrap_or("no connection to the gateway");
                Err(Parted { nobody: true, ..Parted::lost(why) })
            }
            Some(Err(_)) => Ok(GatewayEvent::Nothing),
            None => Err(Parted::lost("the connection ended")),
        }
    }

    /// Leaves in a way that lets the session continue: Discord keeps events until it is resumed.
    pub(super) fn leave(mut self) {
        self.shard.close(CloseFrame::RESUME);
        // One poll sends the close frame. Further polls would make twilight reconnect.
        self.shard.next().now_or_never();
    }
}

/// How a connection ended, and whether its session is over with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parted {
    pub(super) ended: ConnectionEnd,
    pub(super) over: bool,
    /// Whether the server was unreachable: the address may not be good any more.
    pub(super) nobody: bool,
}

impl Parted {
    pub(super) fn lost(why: &str) -> Self {
        Self::new(ConnectionEnd::Lost(why.to_owned()), false)
    }

    fn new(ended: ConnectionEnd, over: bool) -> Self {
        Self { ended, over, nobody: false }
    }

    fn from_close_code(code: Option<u16>) -> Self {
        let why = match code {
            Some(1006) | None => "the connection broke".to_owned(),
            Some(code) => format!("Discord closed the connection ({code})"),
        };
        match closed(code) {
            Closed::Resume => Self::new(ConnectionEnd::Lost(why), false),
            Closed::Anew => Self::new(ConnectionEnd::Lost(why), true),
            Closed::Fatal(error) => Self::new(ConnectionEnd::Fatal(error), true),
        }
    }
}

/// Reads a frame. One that cannot be read is passed over.
fn read(text: &str) -> Result<GatewayEvent, Parted> {
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
        (7, ..) => Err(Parted::new(ConnectionEnd::Renew, false)),
        (9, ..) if frame.d == true => Err(Parted::new(ConnectionEnd::Renew, false)),
        (9, ..) => {
            Err(Parted::new(ConnectionEnd::Later("Discord ended the session".to_owned(), pause()), true))
        }
        _ => Ok(GatewayEvent::Nothing),
    }
}

/// Returns the random delay that Discord requires between a session that it ended and the next.
fn pause() -> Duration {
    Duration::from_millis(fastrand::u64(1000..5000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read_event(frame: &serde_json::Value) -> Result<Option<(u64, String)>, Parted> {
        read(&frame.to_string()).map(|heard| match heard {
            GatewayEvent::Event(event) => Some((event.seq, event.kind)),
            GatewayEvent::Nothing => None,
        })
    }

    #[test]
    fn frames_are_read() {
        let renew = || Err(Parted::new(ConnectionEnd::Renew, false));
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
            over.over && matches!(over.ended, ConnectionEnd::Later(_, pause) if pause.as_secs() < 5),
            "{over:?}"
        );
    }

    #[test]
    fn only_addresses_of_a_gateway_are_gone_to() {
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
    async fn a_session_goes_on_behind_what_was_kept() {
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
            Some(GatewaySession { id, seq: 5, url, me, behind: true, heard: 0, unplaced: Vec::new() })
        );
        let link = gateway.connect(&gateway.address().unwrap()).await.unwrap();
        assert_eq!(link.shard.session().map(Session::sequence), Some(5));
        assert_eq!(link.shard.resume_url(), Some("ws://x"));
        gateway.parted(&Parted { nobody: true, ..Parted::lost("x") });
        assert_eq!((gateway.address(), gateway.resumes()), (None, true), "it is asked for anew");
        gateway.parted(&Parted::new(ConnectionEnd::Renew, true));
        assert!(gateway.connect("ws://y").await.unwrap().shard.session().is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_frame_breaks_anything(text in ".{0,200}", op in 0u64..12, data in ".{0,40}") {
            let _ = read(&text);
            let _ = read(&format!("{{\"op\":{op},\"s\":1,\"t\":\"X\",\"d\":\"{}\"}}", data.escape_default()));
        }
    }
}
