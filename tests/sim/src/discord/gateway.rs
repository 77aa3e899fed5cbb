//! Connections of the gateway, version 10 in JSON: hello, heartbeats, identify, resume, and close codes.

use super::{
    core::Core,
    sessions::{FRAMES, Frame, MESSAGE_CONTENT, Resumed},
    world::World,
};
use crate::{calls::Outcome, stage::Reply};
use axum::{
    extract::{
        Query, State,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade},
    },
    response::Response,
};
use serde_json::{Map, Value, json};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// All existing intents.
const KNOWN: u64 = 0x1_ffff | (1 << 20) | (1 << 21) | (1 << 24) | (1 << 25);
/// Maximum size of a client's payload, in bytes.
const MAX_PAYLOAD_BYTES: usize = 4096;
/// Maximum number of a client's payloads per minute.
const MAX_PAYLOADS_PER_MINUTE: usize = 120;

/// State of the connections.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) core: Arc<Core>,
    pub(crate) stop: CancellationToken,
}

/// `GET /gateway/?v=10&encoding=json`
pub(crate) async fn connect(
    State(link): State<Link>,
    Query(query): Query<HashMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let asked = |name: &str| query.get(name).map(String::as_str);
    let wrong = match (asked("v"), asked("encoding"), asked("compress")) {
        (Some("10"), Some("json") | None, None) => None,
        (Some("10"), ..) => Some((4002, "no such encoding here")),
        _ => Some((4012, "invalid API version")),
    };
    upgrade.on_upgrade(move |mut socket| async move {
        let stop = link.stop.clone();
        let serve = async {
            match wrong {
                Some((code, why)) => close(&mut socket, code, why).await,
                None => Connection::serve(link.core, socket).await,
            }
        };
        stop.run_until_cancelled_owned(serve).await;
    })
}

/// Returns whether a session cannot be resumed after this close code: the codes that forbid reconnecting, and those
/// with a documented invalid or new session.
pub(crate) fn ends_session(code: u16) -> bool {
    matches!(code, 4003 | 4004 | 4007 | 4009..=4014)
}

async fn close(socket: &mut WebSocket, code: u16, why: &'static str) {
    socket.send(Message::Close(Some(CloseFrame { code, reason: why.into() }))).await.ok();
    // The client gets a moment to close, so that it reads the code.
    let bye = async { while let Some(Ok(_)) = socket.recv().await {} };
    tokio::time::timeout(Duration::from_millis(500), bye).await.ok();
}

struct Connection {
    core: Arc<Core>,
    id: u64,
    frames: mpsc::Sender<Frame>,
    /// Whether it has identified itself.
    known: bool,
    said: VecDeque<Instant>,
    heard: Instant,
}

/// How a connection ends.
enum End {
    Close(u16, &'static str),
    /// Immediately, without a close frame.
    Drop,
}

impl Connection {
    async fn serve(core: Arc<Core>, mut socket: WebSocket) {
        let (frames, mut outgoing) = mpsc::channel(FRAMES);
        let id = core.act(World::snowflake);
        let beat = core.look(|world| world.options.heartbeat);
        let hello = json!({"op": 10, "s": null, "t": null, "d": {"heartbeat_interval": u64::try_from(beat.as_millis()).unwrap_or(1000), "_trace": []}});
        if socket.send(text(&hello)).await.is_err() {
            return;
        }
        let mut own = Self {
            core: Arc::clone(&core),
            id,
            frames,
            known: false,
            said: VecDeque::new(),
            heard: Instant::now(),
        };
        let mut leave = Leave { core: &core, id, ended: false };
        let end = loop {
            let late = own.heard + beat.mul_f64(1.5) + Duration::from_secs(1);
            tokio::select! {
                frame = outgoing.recv() => match frame {
                    Some(Frame::Text(frame)) => if socket.send(text(&frame)).await.is_err() { return },
                    Some(Frame::Close(code, why)) => break End::Close(code, why),
                    Some(Frame::Drop) | None => break End::Drop,
                },
                message = socket.recv() => match message {
                    Some(Ok(Message::Text(said))) => {
                        if let Err(end) = own.take(said.as_str()).await { break end }
                    }
                    Some(Ok(Message::Close(told))) => {
                        // A client that closes with one of these will not resume.
                        leave.ended = told.is_none_or(|told| matches!(told.code, 1000 | 1001));
                        return;
                    }
                    Some(Err(_)) | None => return,
                    Some(Ok(_)) => {}
                },
                () = sleep_until(late) => break End::Close(4009, "Session timed out"),
            }
        };
        if let End::Close(code, why) = end {
            leave.ended = ends_session(code);
            close(&mut socket, code, why).await;
        }
    }

    /// Processes a client's message.
    async fn take(&mut self, said: &str) -> Result<(), End> {
        let now = Instant::now();
        self.said.retain(|at| now.duration_since(*at) < Duration::from_secs(60));
        self.said.push_back(now);
        if self.said.len() > MAX_PAYLOADS_PER_MINUTE {
            return Err(End::Close(4008, "Rate limited"));
        }
        let Ok(frame) = serde_json::from_str::<Value>(said) else {
            return Err(End::Close(4002, "Decode error"));
        };
        if said.len() > MAX_PAYLOAD_BYTES {
            return Err(End::Close(4002, "Payload too large"));
        }
        let data = &frame["d"];
        match frame["op"].as_u64() {
            Some(1) => self.beat(),
            Some(2 | 6) if self.known => return Err(End::Close(4005, "Already authenticated.")),
            Some(2) => self.recorded("identify", data, |own| own.identify(data)).await?,
            Some(6) => self.recorded("resume", data, |own| own.resume(data)).await?,
            Some(3 | 4 | 8) if self.known => {}
            Some(3 | 4 | 8) => return Err(End::Close(4003, "Not authenticated.")),
            _ => return Err(End::Close(4001, "Unknown opcode")),
        }
        Ok(())
    }

    fn beat(&mut self) {
        self.heard = Instant::now();
        if !self.core.look(|world| world.sessions.deaf) {
            self.frames.try_send(Frame::Text(json!({"op": 11, "s": null, "t": null, "d": null}))).ok();
        }
    }

    /// Records a message and applies planned failures: then the connection breaks.
    async fn recorded(
        &mut self,
        name: &str,
        data: &Value,
        effect: impl FnOnce(&mut Self) -> Result<(), End>,
    ) -> Result<(), End> {
        let mut params: Map<String, Value> = data.as_object().cloned().unwrap_or_default();
        params.insert("token".to_owned(), "[token]".into());
        let core = Arc::clone(&self.core);
        let mut result = Ok(());
        let reply = core.run(name, params, async {
            result = effect(self);
            let outcome = match &result {
                Ok(()) => Outcome::Answered(Value::Null),
                Err(End::Close(code, why)) => Outcome::Refused(*code, (*why).to_owned()),
                Err(End::Drop) => Outcome::Cut { done: false },
            };
            (Reply::Json(200, Value::Null), outcome)
        });
        match reply.await {
            Reply::Json(200, _) => result,
            _ => Err(End::Drop),
        }
    }

    fn identify(&mut self, data: &Value) -> Result<(), End> {
        self.authorised(data)?;
        let intents = data["intents"].as_u64().unwrap_or(u64::MAX);
        if !data["properties"].is_object() {
            return Err(End::Close(4002, "Decode error"));
        }
        if let Some(shard) = data.get("shard").filter(|shard| !shard.is_null())
            && *shard != json!([0, 1])
        {
            return Err(End::Close(4010, "Invalid shard."));
        }
        if intents & !KNOWN != 0 {
            return Err(End::Close(4013, "Invalid intent(s)."));
        }
        if intents & MESSAGE_CONTENT != 0 && !self.core.look(|world| world.options.content_intent) {
            return Err(End::Close(4014, "Disallowed intent(s)."));
        }
        let socket = (self.id, self.frames.clone());
        self.core.act(|world| world.identified(intents, socket));
        self.known = true;
        Ok(())
    }

    fn resume(&mut self, data: &Value) -> Result<(), End> {
        self.authorised(data)?;
        let socket = (self.id, self.frames.clone());
        let (id, seq) = (data["session_id"].as_str().unwrap_or_default(), data["seq"].as_u64());
        let Some(seq) = seq else { return Err(End::Close(4007, "Invalid seq")) };
        match self.core.act(|world| world.resumed(id, seq, socket)) {
            Resumed::Yes => self.known = true,
            Resumed::Ahead => return Err(End::Close(4007, "Invalid seq")),
            Resumed::No => {
                self.frames.try_send(Frame::Text(json!({"op": 9, "s": null, "t": null, "d": false}))).ok();
            }
        }
        Ok(())
    }

    fn authorised(&self, data: &Value) -> Result<(), End> {
        let token = data["token"].as_str().unwrap_or_default().trim_start_matches("Bot ");
        let fits = self.core.look(|world| !world.revoked && world.options.token == token);
        if fits { Ok(()) } else { Err(End::Close(4004, "Authentication failed.")) }
    }
}

fn text(frame: &Value) -> Message {
    Message::Text(frame.to_string().into())
}

/// Removes the connection on drop.
struct Leave<'a> {
    core: &'a Core,
    id: u64,
    ended: bool,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.core.act(|world| world.left(self.id, self.ended));
    }
}
