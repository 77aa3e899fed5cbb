//! Commands in containers: created, started with framed output on the upgraded connection, inspected.

use super::{Call, World, containers, id, locked, refuse};
use crate::cell::Cell;
use axum::{
    Json,
    body::Body,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    os::unix::process::ExitStatusExt,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    process::Command,
    sync::mpsc,
};

/// Time that the output stays open for background processes after a command's end.
const LINGER: Duration = Duration::from_secs(2);

/// A command in a container.
pub(super) struct Exec {
    id: String,
    container: String,
    body: Value,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    begun: bool,
    running: bool,
    code: Option<i32>,
    pid: u32,
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

pub(super) fn create(call: &Call, name: &str) -> Response {
    let container = match containers::find(&call.world, name) {
        Ok(container) => container,
        Err(response) => return *response,
    };
    if !container.runs() {
        return refuse(StatusCode::CONFLICT, format!("container {} is not running", container.id));
    }
    if words(&call.body["Cmd"]).is_empty() {
        return refuse(StatusCode::BAD_REQUEST, "no exec command specified");
    }
    let id = id();
    let exec = Exec {
        id: id.clone(),
        container: container.name.clone(),
        body: call.body.clone(),
        state: Mutex::default(),
    };
    locked(&call.world.execs).insert(id.clone(), Arc::new(exec));
    (StatusCode::CREATED, Json(json!({"Id": id}))).into_response()
}

pub(super) fn inspect(world: &World, id: &str) -> Response {
    let found = locked(&world.execs).get(id).cloned();
    let Some(exec) = found else {
        return refuse(StatusCode::NOT_FOUND, format!("No such exec instance: {id}"));
    };
    let container = containers::find(world, &exec.container);
    let Ok(container) = container else {
        return refuse(StatusCode::NOT_FOUND, format!("No such container: {}", exec.container));
    };
    let state = locked(&exec.state);
    let words = words(&exec.body["Cmd"]);
    Json(json!({
        "ID": exec.id, "Running": state.running, "ExitCode": state.code, "Pid": state.pid, "OpenStdin": false,
        "OpenStdout": exec.body["AttachStdout"], "OpenStderr": exec.body["AttachStderr"], "CanRemove": !state.running,
        "ContainerID": container.id, "DetachKeys": "", "ProcessConfig": {
            "tty": false, "privileged": false, "user": exec.body["User"], "entrypoint": words.first(),
            "arguments": words.get(1..),
        },
    }))
    .into_response()
}

pub(super) fn start(call: &Call, id: &str, upgrade: OnUpgrade, headers: &HeaderMap) -> Response {
    let found = locked(&call.world.execs).get(id).cloned();
    let Some(exec) = found else {
        return refuse(StatusCode::NOT_FOUND, format!("No such exec instance: {id}"));
    };
    let container = match containers::find(&call.world, &exec.container) {
        Ok(container) => container,
        Err(response) => return *response,
    };
    let Some(pid) = *locked(&container.pid) else {
        return refuse(StatusCode::CONFLICT, format!("container {} is not running", container.id));
    };
    if std::mem::replace(&mut locked(&exec.state).begun, true) {
        return refuse(StatusCode::CONFLICT, format!("exec command {id} has already run"));
    }
    let text = |key: &str, other: &str| {
        exec.body[key].as_str().filter(|text| !text.is_empty()).unwrap_or(other).to_owned()
    };
    let (user, folder) = (text("User", &container.plan.user), text("WorkingDir", &container.plan.folder));
    let environment: Vec<String> =
        container.plan.environment.iter().cloned().chain(words(&exec.body["Env"])).collect();
    let command =
        Cell::command(pid, &container.plan, &environment, &user, &folder, &words(&exec.body["Cmd"]));
    locked(&exec.state).running = true;
    let (send, pieces) = mpsc::channel(8);
    if call.body["Detach"] == true {
        tokio::spawn(run(exec, command, send));
        return StatusCode::OK.into_response();
    }
    if !headers.contains_key(header::UPGRADE) {
        tokio::spawn(run(exec, command, send));
        return framed(pieces);
    }
    tokio::spawn(async move {
        // The response is sent before the command writes anything.
        let upgraded = upgrade.await;
        tokio::spawn(run(exec, command, send));
        if let Ok(upgraded) = upgraded {
            show(pieces, TokioIo::new(upgraded)).await;
        }
    });
    let headers = [
        (header::CONNECTION, "Upgrade"),
        (header::UPGRADE, "tcp"),
        (header::CONTENT_TYPE, "application/vnd.docker.multiplexed-stream"),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Without an upgrade the client gets the same bytes as a body.
fn framed(pieces: mpsc::Receiver<Piece>) -> Response {
    let stream = futures_util::stream::unfold(pieces, async |mut pieces| {
        let piece = pieces.recv().await?;
        Some((Ok::<_, std::io::Error>(frame(&piece)), pieces))
    });
    let kind = [(header::CONTENT_TYPE, "application/vnd.docker.multiplexed-stream")];
    (kind, Body::from_stream(stream)).into_response()
}

/// A chunk of output, and its stream: 1 or 2.
type Piece = (u8, Vec<u8>);

/// Adds the header of eight bytes to each chunk: the stream, three zeros, the length.
fn frame((kind, bytes): &Piece) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or_default().to_be_bytes();
    [&[*kind, 0, 0, 0][..], &length, bytes].concat()
}

async fn show(mut pieces: mpsc::Receiver<Piece>, mut wire: impl AsyncWrite + AsyncRead + Unpin) {
    while let Some(piece) = pieces.recv().await {
        if wire.write_all(&frame(&piece)).await.is_err() {
            return;
        }
    }
    wire.shutdown().await.ok();
}

/// Runs a command to its end. A disconnect does not end it: engines have no such function.
async fn run(exec: Arc<Exec>, mut command: Command, send: mpsc::Sender<Piece>) {
    let Ok(mut child) = command.spawn() else {
        let mut state = locked(&exec.state);
        (state.running, state.code) = (false, Some(127));
        return;
    };
    locked(&exec.state).pid = child.id().unwrap_or_default();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let reading = async {
        tokio::join!(pass(1, out, send.clone()), pass(2, err, send.clone()));
    };
    let mut reading = std::pin::pin!(reading);
    let mut drained = false;
    let outer = child.id().unwrap_or_default();
    let mut look = tokio::time::interval(Duration::from_millis(50));
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            _ = look.tick() => go_on(outer),
            () = &mut reading, if !drained => drained = true,
        }
    };
    let code = status
        .map_or(-1, |status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()));
    {
        let mut state = locked(&exec.state);
        state.running = false;
        state.code = Some(code);
    }
    if !drained {
        tokio::time::timeout(LINGER, reading).await.ok();
    }
}

/// A process that entered the container stops with its command, and must continue to be killed.
fn go_on(outer: u32) {
    let state = |pid: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    if state(&outer.to_string()) != Some('T') {
        return;
    }
    let children =
        std::fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).unwrap_or_default();
    if children.split_whitespace().all(|child| matches!(state(child), None | Some('Z'))) {
        let mut wake = std::process::Command::new("kill");
        wake.args(["-s", "CONT", &outer.to_string()]).status().ok();
    }
}

async fn pass(kind: u8, pipe: Option<impl AsyncRead + Unpin>, send: mpsc::Sender<Piece>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 32 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        // Output without a reader is still read, so that the command continues.
        send.send((kind, buffer.get(..count).unwrap_or_default().to_vec())).await.ok();
    }
}
