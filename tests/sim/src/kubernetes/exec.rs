//! The exec protocol: one WebSocket, a channel number before each chunk, and the result at the end. A closed connection
//! leaves its processes running, and an open one waits for every process that holds its outputs, as on a real node.

use super::{
    World,
    pod::{list, word},
    status,
};
use crate::cell::{Cell, Plan};
use axum::{
    extract::{
        FromRequestParts, Request,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade},
    },
    response::Response,
};
use serde_json::{Value, json};
use std::{os::unix::process::ExitStatusExt, process::Stdio, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin},
    sync::mpsc,
};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// Only in the newest protocol: closes the channel in the second byte.
const CLOSE: u8 = 255;
/// Binary protocols, newest first.
const PROTOCOLS: [&str; 4] =
    ["v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"];

/// Parameters of an exec.
struct Wanted {
    command: Vec<String>,
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

/// Opens an exec, or returns the error.
pub(super) async fn open(world: Arc<World>, key: (String, String), request: Request) -> Response {
    let (mut head, _) = request.into_parts();
    let query: Vec<(String, String)> =
        url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let (pid, plan) = match place(&world, &key, &query) {
        Ok(place) => place,
        Err(response) => return *response,
    };
    let flag =
        |name: &str| query.iter().any(|(key, value)| key == name && matches!(value.as_str(), "true" | "1"));
    let wanted = Wanted {
        command: query.iter().filter(|(key, _)| key == "command").map(|(_, word)| word.clone()).collect(),
        stdin: flag("stdin"),
        stdout: flag("stdout"),
        stderr: flag("stderr"),
    };
    if wanted.command.is_empty() {
        return status::failure(400, "you must specify at least 1 command for the container", &json!({}));
    }
    if !(wanted.stdin || wanted.stdout || wanted.stderr) {
        return status::failure(400, "you must specify at least one of stdin, stdout, stderr", &json!({}));
    }
    let Ok(upgrade) = WebSocketUpgrade::from_request_parts(&mut head, &()).await else {
        return status::failure(400, "Upgrade request required", &json!({}));
    };
    upgrade.protocols(PROTOCOLS).on_upgrade(move |socket| async move {
        let newest = socket.protocol().is_some_and(|name| name == PROTOCOLS[0]);
        serve(&world, socket, newest, pid, &plan, &wanted).await;
    })
}

/// Finds the requested container.
fn place(
    world: &World,
    key: &(String, String),
    query: &[(String, String)],
) -> Result<(u32, Arc<Plan>), Box<Response>> {
    let state = world.state();
    let Some(pod) = state.pods.get(key) else { return Err(Box::new(status::missing("pods", &key.1))) };
    let containers = list(&pod.shown["spec"]["containers"]);
    let named = query.iter().find(|(name, _)| name == "container").map(|(_, name)| name.as_str());
    let name = named.unwrap_or_else(|| containers.first().map(|one| word(&one["name"])).unwrap_or_default());
    if containers.iter().all(|one| word(&one["name"]) != name) {
        let text = format!("container {name} is not valid for pod {}", key.1);
        return Err(Box::new(status::failure(400, &text, &json!({}))));
    }
    let Some(pid) = pod.pid else {
        let text = format!("unable to upgrade connection: container not found (\"{name}\")");
        return Err(Box::new(status::failure(500, &text, &json!({}))));
    };
    Ok((pid, pod.plan.clone()))
}

async fn serve(world: &World, mut socket: WebSocket, newest: bool, pid: u32, plan: &Plan, wanted: &Wanted) {
    // The server first announces the channels.
    for channel in [STDOUT, STDERR, ERROR] {
        socket.send(Message::binary(vec![channel])).await.ok();
    }
    let mut command = Cell::command(pid, plan, &plan.environment, &plan.user, &plan.folder, &wanted.command);
    command.stdin(if wanted.stdin { Stdio::piped() } else { Stdio::null() });
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return finish(socket, &broken(&error.to_string())).await,
    };
    let mut stdin = child.stdin.take();
    let (from, mut pieces) = mpsc::channel(16);
    pump(world, child.stdout.take(), STDOUT, wanted.stdout, from.clone());
    pump(world, child.stderr.take(), STDERR, wanted.stderr, from);
    let (cut, mut open) = (world.cut(), true);
    loop {
        tokio::select! {
            piece = pieces.recv() => match piece {
                Some(piece) => {
                    if socket.send(Message::binary(piece)).await.is_err() { break }
                }
                // No process holds the outputs any more.
                None => return finish(socket, &outcome(&mut child, &wanted.command).await).await,
            },
            message = socket.recv(), if open => match message {
                Some(Ok(Message::Binary(bytes))) => take(&mut stdin, &bytes, newest).await,
                // Some clients send text frames.
                Some(Ok(Message::Text(text))) => take(&mut stdin, text.as_bytes(), newest).await,
                Some(Ok(Message::Close(_)) | Err(_)) | None => open = false,
                Some(Ok(_)) => {}
            },
            () = cut.cancelled() => break,
        }
        if !open {
            break;
        }
    }
    // The process continues; its output is discarded.
    drop((socket, stdin));
    world.tasks.spawn(world.stop.clone().run_until_cancelled_owned(async move {
        while pieces.recv().await.is_some() {}
        child.wait().await.ok();
    }));
}

/// Forwards a client's input.
async fn take(stdin: &mut Option<ChildStdin>, bytes: &[u8], newest: bool) {
    match bytes {
        [STDIN, rest @ ..] => {
            if let Some(pipe) = stdin {
                // A process that does not read any more does not affect the connection.
                pipe.write_all(rest).await.ok();
                pipe.flush().await.ok();
            }
        }
        [CLOSE, STDIN] if newest => *stdin = None,
        _ => {}
    }
}

/// Reads an output until no process holds it.
fn pump(
    world: &World,
    from: Option<impl AsyncRead + Unpin + Send + 'static>,
    channel: u8,
    wanted: bool,
    to: mpsc::Sender<Vec<u8>>,
) {
    let Some(mut from) = from else { return };
    world.tasks.spawn(world.stop.clone().run_until_cancelled_owned(async move {
        let mut buffer = vec![0; 32 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let piece = [&[channel][..], buffer.get(..count).unwrap_or_default()].concat();
            if wanted && to.send(piece).await.is_err() {
                break;
            }
        }
        // A process that still writes must not be blocked.
        while let Ok(1..) = from.read(&mut buffer).await {}
    }));
}

/// Returns the result of the command.
async fn outcome(child: &mut Child, command: &[String]) -> Value {
    let status = match child.wait().await {
        Ok(status) => status,
        Err(error) => return broken(&error.to_string()),
    };
    match status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255) {
        0 => json!({"metadata": {}, "status": "Success"}),
        127 if command.len() == 1 => {
            broken("OCI runtime exec failed: exec failed: unable to start container process")
        }
        code => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: error executing command {command:?}, exit code {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
    }
}

fn broken(message: &str) -> Value {
    json!({
        "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": format!("Internal error occurred: {message}"),
    })
}

async fn finish(mut socket: WebSocket, status: &Value) {
    let piece = [&[ERROR][..], status.to_string().as_bytes()].concat();
    socket.send(Message::binary(piece)).await.ok();
    socket.send(Message::Close(Some(CloseFrame { code: 1000, reason: "".into() }))).await.ok();
}
