//! The long connection: its endpoint, its one-time tickets, and its frames.

use super::{
    Core,
    ask::Ask,
    frame::{self, Frame},
    refusal::{Answer, Done, Refusal},
    world::World,
};
use crate::{http::cut, stage::Reply};
use axum::{
    body::Body,
    extract::{
        FromRequestParts, Request,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::StatusCode,
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use prost::Message as _;
use serde_json::{Map, Value, json};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Maximum number of connections of an app.
const MAX_CONNECTIONS: usize = 50;
/// Maximum number of frames waiting for a slow client.
const WAITING: usize = 4096;

/// Output of a connection.
#[derive(Debug)]
pub(crate) enum Out {
    Frame(bytes::Bytes),
    /// Breaks the connection without a close frame.
    Break,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) service: i32,
    pub(crate) out: mpsc::Sender<Out>,
}

/// `/callback/ws/endpoint`: no token, capitalized names, and a URL that is equivalent to a password.
pub(crate) fn endpoint(world: &mut World, ask: &Ask) -> Answer {
    let credentials = (ask.text("AppID"), ask.text("AppSecret"));
    if credentials != (Some(world.options.app_id.as_str()), Some(world.options.app_secret.as_str())) {
        return Err(Refusal::fine(514, "app_id or app_secret is invalid"));
    }
    let (device, ticket) = (world.number(), world.fresh("ticket"));
    world.tickets.insert(ticket.clone());
    let host = world.url.replacen("http", "ws", 1);
    let url = format!(
        "{host}/ws/v2?fpid=493&aid=552564&device_id={device}&access_key={ticket}&service_id=33554678&ticket={ticket}"
    );
    Ok(Done::Data(json!({"URL": url, "ClientConfig": frame::client_config(world)})))
}

/// Accepts a client, or reports the error in headers.
pub(crate) async fn connect(
    core: Arc<Core>,
    end: CancellationToken,
    query: HashMap<String, String>,
    request: Request<Body>,
) -> Response {
    let record = query.iter().filter(|(name, _)| matches!(name.as_str(), "device_id" | "service_id"));
    let record: Map<String, Value> = record.map(|(name, value)| (name.clone(), json!(value))).collect();
    let effect = async { super::refusal::answer(core.act(|world| admit(world, &query))) };
    match core.run("ws.connect", record, effect).await {
        Reply::Json(200, _) => {}
        Reply::Headed(_, _, body) => return refused(&body),
        Reply::Cut => return cut(),
        other => return other.into_response(),
    }
    let (mut parts, _) = request.into_parts();
    let Ok(upgrade) = WebSocketUpgrade::from_request_parts(&mut parts, &()).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let service = query.get("service_id").and_then(|id| id.parse().ok()).unwrap_or(0);
    upgrade.on_upgrade(move |socket| async move {
        end.run_until_cancelled(talk(&core, socket, service)).await;
    })
}

fn admit(world: &mut World, query: &HashMap<String, String>) -> Answer {
    let ticket = query.get("ticket").map(String::as_str).unwrap_or_default();
    if !world.tickets.remove(ticket) {
        return Err(Refusal::new(514, "the ticket is invalid"));
    }
    if world.connections.len() >= MAX_CONNECTIONS {
        return Err(Refusal::new(1_000_040_350, "the number of connections exceeded the limit"));
    }
    Ok(Done::Data(json!({})))
}

fn refused(body: &Value) -> Response {
    let code = body["code"].as_i64().unwrap_or(500);
    let (status, inner) = if code == 1_000_040_350 { (514, code) } else { (code, 1_000_040_346) };
    let msg = body["msg"].as_str().unwrap_or_default().to_owned();
    let headers = [
        ("handshake-status", status.to_string()),
        ("handshake-msg", msg),
        ("handshake-autherrcode", inner.to_string()),
    ];
    (StatusCode::BAD_REQUEST, headers, "").into_response()
}

async fn talk(core: &Core, mut socket: WebSocket, service: i32) {
    let (out, mut waiting) = mpsc::channel(WAITING);
    let id = core.act(|world| {
        let id = world.number();
        world.connections.insert(id, Connection { service, out });
        id
    });
    let _gone = Gone { core, id };
    loop {
        tokio::select! {
            out = waiting.recv() => match out {
                Some(Out::Frame(bytes)) if socket.send(Message::Binary(bytes.clone())).await.is_ok() => {}
                _ => return,
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Binary(bytes))) => {
                    let answer = core.act(|world| take(world, id, &bytes));
                    if let Some(answer) = answer
                        && socket.send(Message::Binary(answer.into())).await.is_err()
                    {
                        return;
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Text(_))) => {
                    core.act(|world| world.violations.push("a text message where frames are binary".to_owned()));
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            },
        }
    }
}

/// Removes a connection however it ended.
struct Gone<'a> {
    core: &'a Core,
    id: u64,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.core.act(|world| world.connections.remove(&self.id));
    }
}

/// Processes a client's frame; returns the answer.
fn take(world: &mut World, connection: u64, bytes: &[u8]) -> Option<Vec<u8>> {
    if world.deaf {
        return None;
    }
    let Ok(frame) = Frame::decode(bytes) else {
        world.violations.push("bytes that are no frame".to_owned());
        return None;
    };
    missing_fields(world, bytes);
    match (frame.method, frame.header("type")) {
        (frame::CONTROL, Some("ping")) => {
            world.pings += 1;
            if frame.service != world.connections.get(&connection)?.service {
                world.violations.push(format!("a ping of service {}", frame.service));
            }
            Some(Frame::pong(world, frame.service).encode_to_vec())
        }
        (frame::DATA, Some("event")) => {
            acknowledged(world, &frame);
            None
        }
        (method, kind) => {
            world.violations.push(format!("a frame of method {method} and type {kind:?}"));
            None
        }
    }
}

/// Records missing required fields of a frame, which strict peers refuse.
fn missing_fields(world: &mut World, bytes: &[u8]) {
    for (tag, name) in [(1, "SeqID"), (2, "LogID"), (3, "service"), (4, "method")] {
        if !has_field(bytes, tag) {
            world.violations.push(format!("a frame without {name}"));
        }
    }
}

/// Returns whether a frame contains a field.
fn has_field(mut bytes: &[u8], wanted: u64) -> bool {
    use prost::encoding::decode_varint;
    while !bytes.is_empty() {
        let Ok(key) = decode_varint(&mut bytes) else { return false };
        if key >> 3 == wanted {
            return true;
        }
        let skipped = match key & 7 {
            0 => decode_varint(&mut bytes).map(|_| 0),
            2 => decode_varint(&mut bytes),
            _ => return false,
        };
        let Some(rest) = skipped.ok().and_then(|skip| bytes.get(usize::try_from(skip).ok()?..)) else {
            return false;
        };
        bytes = rest;
    }
    false
}

/// Returns whether an acknowledgement contains the processing time in milliseconds. The platform's Node client
/// subtracts in the wrong order, so its time is negative or zero.
fn tells_time(frame: &Frame) -> bool {
    frame.header("biz_rt").is_some_and(|ms| ms.parse::<i64>().is_ok())
}

fn acknowledged(world: &mut World, frame: &Frame) {
    let id = frame.header("message_id").unwrap_or_default().to_owned();
    let answer: Value =
        serde_json::from_slice(frame.payload.as_deref().unwrap_or_default()).unwrap_or_default();
    let Some(code) = answer["code"].as_i64() else {
        world.violations.push(format!("an acknowledgement of {id} without a code"));
        return;
    };
    if code == 200 && !tells_time(frame) {
        world.violations.push(format!("an acknowledgement of {id} without its time"));
    }
    if let Some(event) = world.events.get_mut(&id)
        && event.number != frame.log_id
    {
        world.violations.push(format!("an acknowledgement of {id} that does not echo its frame"));
    }
    let data = answer["data"].as_str().and_then(|data| BASE64_STANDARD.decode(data).ok());
    let data = data.and_then(|data| serde_json::from_slice(&data).ok());
    world.acknowledged(&id, code, data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::frame::Header;

    #[test]
    fn an_acknowledgement_tells_its_time_also_where_the_client_counts_backwards() {
        let cases =
            [(Some("12"), true), (Some("0"), true), (Some("-3"), true), (Some("soon"), false), (None, false)];
        for (time, told) in cases {
            let header = |ms: &str| Header { key: "biz_rt".into(), value: ms.into() };
            let frame = Frame { headers: time.map(header).into_iter().collect(), ..Frame::default() };
            assert_eq!(tells_time(&frame), told, "{time:?}");
        }
    }
}
