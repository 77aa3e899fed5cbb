//! Sessions of the gateway with their sent events, so that they can be repeated.

use super::{
    wire,
    world::{BOT, World},
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use tokio::{sync::mpsc, time::Instant};

/// Maximum number of stored events per session.
const KEPT: usize = 2000;
/// Maximum number of frames waiting for one connection.
pub(crate) const FRAMES: usize = 4096;

pub(crate) const GUILDS: u64 = 1;
pub(crate) const GUILD_MESSAGES: u64 = 1 << 9;
pub(crate) const DIRECT_MESSAGES: u64 = 1 << 12;
pub(crate) const MESSAGE_CONTENT: u64 = 1 << 15;

/// Output of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Text(Value),
    /// Closes with this code.
    Close(u16, &'static str),
    /// Closes without a close frame.
    Drop,
}

/// Result of a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    Yes,
    /// The session is gone, or missed events are no longer stored.
    No,
    /// The sequence number is higher than that of any event.
    Ahead,
}

/// All sessions, and settings of the test.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) all: Vec<Session>,
    /// Whether heartbeats are ignored.
    pub(crate) deaf: bool,
    /// Number of started sessions.
    pub(crate) identified: u64,
    pub(crate) resumed: u64,
    count: u64,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) intents: u64,
    pub(crate) seq: u64,
    log: VecDeque<(u64, Value)>,
    /// Its connection.
    pub(crate) socket: Option<(u64, mpsc::Sender<Frame>)>,
    /// When it was disconnected.
    pub(crate) away: Option<Instant>,
}

impl Session {
    fn tell(&mut self, kind: &str, data: &Value) {
        self.seq += 1;
        let frame = json!({"op": 0, "s": self.seq, "t": kind, "d": data});
        if self.log.len() == KEPT {
            self.log.pop_front();
        }
        self.log.push_back((self.seq, frame.clone()));
        self.send(Frame::Text(frame));
    }

    pub(crate) fn send(&self, frame: Frame) {
        if let Some((_, socket)) = &self.socket {
            socket.try_send(frame).ok();
        }
    }

    /// Returns an event as visible to this session, if at all.
    fn sees(&self, kind: &str, data: &Value) -> Option<Value> {
        let direct = data.get("guild_id").is_none();
        let needed = match kind {
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" | "MESSAGE_DELETE" if direct => DIRECT_MESSAGES,
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" | "MESSAGE_DELETE" => GUILD_MESSAGES,
            "INTERACTION_CREATE" => 0,
            _ => GUILDS,
        };
        if self.intents & needed != needed {
            return None;
        }
        let mut data = data.clone();
        let own = data["author"]["id"] == BOT;
        let named = data["mentions"].as_array().is_some_and(|all| all.iter().any(|one| one["id"] == BOT));
        if kind.starts_with("MESSAGE_")
            && kind != "MESSAGE_DELETE"
            && self.intents & MESSAGE_CONTENT == 0
            && !(direct || own || named)
        {
            data["content"] = "".into();
            for field in ["attachments", "embeds", "components"] {
                data[field] = json!([]);
            }
        }
        Some(data)
    }
}

impl World {
    /// Reports an event to all sessions.
    pub(crate) fn tell(&mut self, kind: &str, data: &Value) {
        for session in &mut self.sessions.all {
            if let Some(data) = session.sees(kind, data) {
                session.tell(kind, &data);
            }
        }
    }

    /// Starts a session of a connection.
    pub(crate) fn identified(&mut self, intents: u64, socket: (u64, mpsc::Sender<Frame>)) {
        self.sessions.count += 1;
        self.sessions.identified += 1;
        self.options.starts = self.options.starts.saturating_sub(1);
        let id = format!("51d{:029x}", self.sessions.count);
        let mut session = Session {
            id: id.clone(),
            intents,
            seq: 0,
            log: VecDeque::new(),
            socket: Some(socket),
            away: None,
        };
        let host = self.url.replacen("http://", "ws://", 1);
        let guild = json!({"id": super::world::GUILD, "unavailable": true});
        session.tell(
            "READY",
            &json!({
                "v": 10, "user": me(self), "guilds": [guild], "session_id": id, "session_type": "normal",
                "resume_gateway_url": format!("{host}/resume"), "shard": [0, 1],
                "application": {"id": BOT, "flags": super::me::flags(self)}, "private_channels": [],
                "user_settings": {}, "relationships": [], "presences": [],
            }),
        );
        if intents & GUILDS != 0 {
            session.tell("GUILD_CREATE", &wire::guild(self));
        }
        self.sessions.all.push(session);
    }

    /// Resumes a session: missed events are repeated, followed by the confirmation. Another connection with the session
    /// loses it.
    pub(crate) fn resumed(&mut self, id: &str, seq: u64, socket: (u64, mpsc::Sender<Frame>)) -> Resumed {
        let most = self.options.resumable;
        self.sessions.all.retain(|session| session.away.is_none_or(|since| since.elapsed() < most));
        let Some(session) = self.sessions.all.iter_mut().find(|session| session.id == id) else {
            return Resumed::No;
        };
        let oldest = session.log.front().map_or(1, |(seq, _)| *seq);
        if seq > session.seq {
            return Resumed::Ahead;
        }
        if seq + 1 < oldest {
            return Resumed::No;
        }
        session.send(Frame::Drop);
        session.socket = Some(socket);
        session.away = None;
        for (_, frame) in session.log.iter().filter(|(own, _)| *own > seq) {
            session.send(Frame::Text(frame.clone()));
        }
        session.tell("RESUMED", &json!({}));
        self.sessions.resumed += 1;
        Resumed::Yes
    }

    /// Removes a connection; `ended` if its session is over, too.
    pub(crate) fn left(&mut self, socket: u64, ended: bool) {
        let own = |session: &Session| session.socket.as_ref().is_some_and(|(id, _)| *id == socket);
        if ended {
            self.sessions.all.retain(|session| !own(session));
        }
        for session in self.sessions.all.iter_mut().filter(|session| own(session)) {
            session.socket = None;
            session.away = Some(Instant::now());
        }
    }
}

fn me(world: &World) -> Value {
    let mut me = wire::user(world, BOT);
    me["verified"] = true.into();
    me["mfa_enabled"] = false.into();
    me["email"] = Value::Null;
    me["flags"] = 0.into();
    me
}
