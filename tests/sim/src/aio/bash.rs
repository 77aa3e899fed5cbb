//! `/v1/bash`: each command is a separate process, whose output is stored and can be read from any position.

use super::{World, invalid, locked, not_done, told};
use axum::{http::StatusCode, response::Response};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::Notify,
};
use tokio_util::sync::CancellationToken;

/// A session: its folder, and its last command.
#[derive(Debug, Default)]
pub(super) struct Session {
    folder: Mutex<String>,
    last: Mutex<Option<Arc<Job>>>,
}

/// One command.
#[derive(Debug, Default)]
struct Job {
    id: String,
    command: String,
    out: Mutex<Vec<u8>>,
    err: Mutex<Vec<u8>>,
    state: Mutex<State>,
    changed: Notify,
    killed: CancellationToken,
}

#[derive(Clone, Debug, Default)]
struct State {
    status: &'static str,
    code: Option<i32>,
}

fn text<'a>(body: &'a Value, key: &str) -> Option<&'a str> {
    body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn seconds(body: &Value, key: &str) -> Option<Duration> {
    body.get(key).and_then(Value::as_f64).map(Duration::from_secs_f64)
}

fn session(world: &World, body: &Value) -> (String, Arc<Session>) {
    let id = text(body, "session_id").map_or_else(|| format!("{:032x}", fastrand::u128(..)), str::to_owned);
    let session = locked(&world.sessions).entry(id.clone()).or_default().clone();
    if let Some(folder) = text(body, "exec_dir") {
        folder.clone_into(&mut locked(&session.folder));
    }
    (id, session)
}

pub(super) fn create(world: &World, body: &Value) -> Response {
    let (id, session) = session(world, body);
    told(info(&id, &session))
}

pub(super) fn sessions(world: &World) -> Response {
    let all: Vec<Value> = locked(&world.sessions).iter().map(|(id, session)| info(id, session)).collect();
    told(all)
}

fn info(id: &str, session: &Session) -> Value {
    let now = "2026-01-01T00:00:00Z";
    let count = usize::from(locked(&session.last).is_some());
    json!({
        "session_id": id, "status": "ready", "working_dir": *locked(&session.folder), "created_at": now,
        "last_used_at": now, "current_command": null, "command_count": count,
    })
}

pub(super) async fn exec(world: &World, body: &Value) -> Response {
    let Some(command) = text(body, "command") else { return invalid("command") };
    let (id, session) = session(world, body);
    let environment: Vec<String> = body
        .get("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
        .collect();
    let folder = locked(&session.folder).clone();
    let mut process = world.place.command(&["/bin/bash", "-c", command], &environment, &folder);
    process.process_group(0);
    let job = Arc::new(Job {
        id: format!("{:016x}", fastrand::u64(..)),
        command: command.to_owned(),
        ..Job::default()
    });
    locked(&job.state).status = "running";
    *locked(&session.last) = Some(job.clone());
    match process.spawn() {
        Ok(child) => {
            tokio::spawn(watch(job.clone(), child, seconds(body, "hard_timeout")));
        }
        Err(error) => return not_done(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
    if !body.get("async_mode").and_then(Value::as_bool).unwrap_or_default() {
        let limit = seconds(body, "timeout").unwrap_or(Duration::from_secs(86_400));
        tokio::time::timeout(limit, ended(&job)).await.ok();
    }
    let most = body.get("max_output_length").and_then(Value::as_u64).unwrap_or(50_000);
    told(result(&id, &job, usize::try_from(most).unwrap_or_default()))
}

fn result(session: &str, job: &Job, most: usize) -> Value {
    let (out, err, state) = (locked(&job.out), locked(&job.err), locked(&job.state));
    json!({
        "session_id": session, "command_id": job.id, "command": job.command, "status": state.status,
        "stdout": shortened(&out, most), "stderr": shortened(&err, most), "exit_code": state.code,
        "offset": out.len(), "stderr_offset": err.len(),
    })
}

/// Cuts the middle of a long output.
fn shortened(bytes: &[u8], most: usize) -> String {
    let all = String::from_utf8_lossy(bytes);
    let count = all.chars().count();
    if most == 0 || count <= most {
        return all.into_owned();
    }
    let head: String = all.chars().take(most / 2).collect();
    let tail: String = all.chars().skip(count - most / 2).collect();
    format!("{head}\n... [{} characters truncated] ...\n{tail}", count - most / 2 * 2)
}

async fn ended(job: &Job) {
    loop {
        let changed = job.changed.notified();
        if locked(&job.state).status != "running" {
            return;
        }
        changed.await;
    }
}

/// Waits for the end of a command, or kills it with its process group.
async fn watch(job: Arc<Job>, mut child: tokio::process::Child, hard: Option<Duration>) {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let reading = [tokio::spawn(keep(job.clone(), out, false)), tokio::spawn(keep(job.clone(), err, true))];
    let status = tokio::select! {
        status = child.wait() => match status {
            Ok(status) => State { status: "completed", code: Some(code(status)) },
            Err(_) => State { status: "killed", code: None },
        },
        () = async { tokio::time::sleep(hard.unwrap_or_default()).await }, if hard.is_some() => {
            State { status: "timed_out", code: None }
        }
        () = job.killed.cancelled() => State { status: "killed", code: None },
    };
    if status.status != "completed"
        && let Some(pid) = child.id()
    {
        stop(pid).await;
        child.wait().await.ok();
    }
    // Background processes do not delay the response.
    for reading in reading {
        tokio::time::timeout(Duration::from_millis(200), reading).await.ok();
    }
    *locked(&job.state) = status;
    job.changed.notify_waiters();
}

fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Kills a process group, including processes that entered a container.
async fn stop(pid: u32) {
    let mut children = vec![pid];
    let mut at = 0;
    while let Some(parent) = children.get(at).copied() {
        at += 1;
        let path = format!("/proc/{parent}/task/{parent}/children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        children.extend(text.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    let mut kill = tokio::process::Command::new("kill");
    kill.args(["-s", "KILL", "--"]).args(children.iter().map(u32::to_string));
    kill.stderr(std::process::Stdio::null()).status().await.ok();
}

async fn keep(job: Arc<Job>, pipe: Option<impl AsyncRead + Unpin>, error: bool) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let bytes = buffer.get(..count).unwrap_or_default();
        locked(if error { &job.err } else { &job.out }).extend_from_slice(bytes);
        job.changed.notify_waiters();
    }
}

pub(super) async fn output(world: &World, body: &Value) -> Response {
    let Some(id) = text(body, "session_id") else { return invalid("session_id") };
    let session = locked(&world.sessions).get(id).cloned();
    let Some(session) = session else {
        return not_done(StatusCode::NOT_FOUND, &format!("Session not found: {id}"));
    };
    let Some(job) = locked(&session.last).clone() else {
        return not_done(StatusCode::NOT_FOUND, "No command");
    };
    let number = |key: &str| {
        usize::try_from(body.get(key).and_then(Value::as_u64).unwrap_or_default()).unwrap_or_default()
    };
    let at = (number("offset"), number("stderr_offset"));
    if body.get("wait").and_then(Value::as_bool).unwrap_or_default() {
        let news = async {
            loop {
                let changed = job.changed.notified();
                let more = locked(&job.out).len() > at.0 || locked(&job.err).len() > at.1;
                if more || locked(&job.state).status != "running" {
                    return;
                }
                changed.await;
            }
        };
        let limit = seconds(body, "wait_timeout").unwrap_or(Duration::from_secs(10));
        tokio::time::timeout(limit, news).await.ok();
    }
    let (out, err, state) = (locked(&job.out), locked(&job.err), locked(&job.state));
    let since =
        |bytes: &[u8], at: usize| String::from_utf8_lossy(bytes.get(at..).unwrap_or_default()).into_owned();
    told(json!({
        "session_id": id, "stdout": since(&out, at.0), "stderr": since(&err, at.1), "offset": out.len(),
        "stderr_offset": err.len(), "command": {
            "command_id": job.id, "command": job.command, "status": state.status, "exit_code": state.code,
        },
    }))
}

pub(super) async fn kill(world: &World, body: &Value) -> Response {
    let Some(id) = text(body, "session_id") else { return invalid("session_id") };
    let session = locked(&world.sessions).get(id).cloned();
    let Some(session) = session else {
        return not_done(StatusCode::NOT_FOUND, &format!("Session not found: {id}"));
    };
    let job = locked(&session.last).clone();
    if let Some(job) = job {
        job.killed.cancel();
        ended(&job).await;
    }
    told(Value::Null)
}

pub(super) fn close(world: &World, id: &str) -> Response {
    let session = locked(&world.sessions).remove(id);
    match session {
        Some(session) => {
            let job = locked(&session.last).clone();
            if let Some(job) = job {
                job.killed.cancel();
            }
            told(json!({}))
        }
        None => not_done(StatusCode::NOT_FOUND, &format!("Session not found: {id}")),
    }
}
