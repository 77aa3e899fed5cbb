//! Connections of Socket Mode.

use super::{
    core::Core,
    envelopes::{CONNECTIONS, FRAMES, Frame, Socket},
    error::{Answer, Refusal},
    params::Params,
    world::{APP, World},
};
use crate::{calls::Outcome, stage::Reply};
use axum::{
    extract::{
        Query, State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tokio_util::sync::CancellationToken;

/// `apps.connections.open`: returns a URL for one connection.
pub(crate) fn open(world: &mut World, _: &Params) -> Answer {
    if world.envelopes.disabled {
        return Err(Refusal::new("socket_mode_not_enabled"));
    }
    let ticket = format!("{:08x}-0000-4000-8000-{:012}", 0x51ac_0000_u32, world.fresh());
    world.envelopes.tickets.push(ticket.clone());
    let host = world.url.replacen("http://", "ws://", 1);
    Ok(json!({"ok": true, "url": format!("{host}/link/?ticket={ticket}&app_id={APP}")}))
}

#[derive(Deserialize)]
pub(crate) struct Asked {
    ticket: Option<String>,
}

/// State of the connections.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) core: Arc<Core>,
    pub(crate) stop: CancellationToken,
}

/// `GET /link/`
pub(crate) async fn link(
    State(link): State<Link>,
    Query(asked): Query<Asked>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let ticket = asked.ticket.unwrap_or_default();
    let valid = link.core.act(|world| {
        let tickets = &mut world.envelopes.tickets;
        let found = tickets.iter().position(|known| *known == ticket);
        found.map(|at| tickets.remove(at)).is_some()
    });
    if !valid {
        return (StatusCode::UNAUTHORIZED, "no such ticket").into_response();
    }
    upgrade.on_upgrade(move |socket| async move {
        let stop = link.stop.clone();
        stop.run_until_cancelled_owned(serve(link.core, socket)).await;
    })
}

async fn serve(core: Arc<Core>, mut socket: WebSocket) {
    let (frames, mut outgoing) = mpsc::channel(FRAMES);
    let entered = core.act(|world| enter(world, frames));
    let (id, hello) = match entered {
        Ok(entered) => entered,
        Err(goodbye) => {
            socket.send(text(&goodbye)).await.ok();
            return;
        }
    };
    let _leave = Leave { core: &core, id };
    if socket.send(text(&hello)).await.is_err() {
        return;
    }
    let every = core.look(|world| world.options.ping);
    let mut ping = interval_at(Instant::now() + every, every);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            frame = outgoing.recv() => match frame {
                Some(Frame::Text(frame)) => if socket.send(text(&frame)).await.is_err() { return },
                Some(Frame::Close) => { socket.send(Message::Close(None)).await.ok(); return },
                Some(Frame::Drop) | None => return,
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(message))) => if !take(&core, id, message.as_str()).await { return },
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
            _ = ping.tick() => {
                let words = format!("Ping from applink-{id}");
                if socket.send(Message::Ping(words.into())).await.is_err() { return }
            }
        }
    }
}

fn text(frame: &Value) -> Message {
    Message::Text(frame.to_string().into())
}

fn enter(world: &mut World, frames: mpsc::Sender<Frame>) -> Result<(u64, Value), Value> {
    let debug = json!({"host": "applink-simulated-1", "build_number": 1});
    if world.envelopes.sockets.len() >= CONNECTIONS {
        return Err(json!({"type": "disconnect", "reason": "too_many_websockets", "debug_info": debug}));
    }
    let id = world.fresh();
    world.envelopes.sockets.push(Socket { id, frames });
    Ok((
        id,
        json!({
            "type": "hello", "num_connections": world.envelopes.sockets.len(),
            "connection_info": {"app_id": APP},
            "debug_info": {
                "host": "applink-simulated-1", "build_number": 1, "approximate_connection_time": 18060,
                "started": "2026-11-20 09:00:00.000",
            },
        }),
    ))
}

/// Processes an acknowledgement, recorded as `ack`. Returns `false` if the connection has to break.
async fn take(core: &Core, socket: u64, message: &str) -> bool {
    let frame: Value = serde_json::from_str(message).unwrap_or_default();
    let mut params: Map<String, Value> = frame.as_object().cloned().unwrap_or_default();
    params.insert("socket".to_owned(), socket.into());
    let reply = core.run("ack", params, async {
        let id = frame["envelope_id"].as_str().unwrap_or_default();
        let known = core.act(|world| {
            if frame.get("payload").is_some() {
                world.envelopes.answers.push(frame.clone());
            }
            world.answered(id, &frame["payload"]);
            world.acknowledged(id)
        });
        let outcome = if known {
            Outcome::Answered(Value::Null)
        } else {
            Outcome::Refused(404, format!("no envelope {id:?} waits"))
        };
        (Reply::Json(200, Value::Null), outcome)
    });
    !matches!(reply.await, Reply::Cut)
}

/// Removes the connection on drop.
struct Leave<'a> {
    core: &'a Core,
    id: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.core.act(|world| world.disconnected(self.id));
    }
}
