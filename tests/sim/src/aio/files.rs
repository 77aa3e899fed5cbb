//! `/v1/file`: uses processes in the same place as commands, so that paths have the same meaning.

use super::{Place, invalid, not_done, told};
use axum::{
    body::Body,
    http::{StatusCode, header::CONTENT_LENGTH},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;

async fn run(place: &Place, words: &[&str], input: &[u8]) -> Option<Output> {
    let mut child = place.command(words, &[], "").stdin(Stdio::piped()).spawn().ok()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input).await.ok();
    }
    child.wait_with_output().await.ok()
}

fn failed(output: Option<Output>) -> Response {
    let said = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    let status = match said.contains("No such file") {
        true => StatusCode::NOT_FOUND,
        false => StatusCode::INTERNAL_SERVER_ERROR,
    };
    not_done(status, &said)
}

pub(super) async fn download(place: &Place, path: Option<&String>) -> Response {
    let Some(path) = path else { return invalid("path") };
    match run(place, &["cat", "--", path], b"").await {
        Some(output) if output.status.success() => {
            ([(CONTENT_LENGTH, output.stdout.len())], Body::from(output.stdout)).into_response()
        }
        output => failed(output),
    }
}

pub(super) async fn read(place: &Place, body: &Value) -> Response {
    let Some(file) = body.get("file").and_then(Value::as_str) else { return invalid("file") };
    match run(place, &["cat", "--", file], b"").await {
        Some(output) if output.status.success() => {
            told(json!({"content": String::from_utf8_lossy(&output.stdout), "file": file}))
        }
        output => failed(output),
    }
}

pub(super) async fn write(place: &Place, body: &Value) -> Response {
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let Some(file) = text("file") else { return invalid("file") };
    let Some(content) = text("content") else { return invalid("content") };
    let bytes = match text("encoding") {
        Some("base64") => match BASE64_STANDARD.decode(content) {
            Ok(bytes) => bytes,
            Err(error) => return not_done(StatusCode::BAD_REQUEST, &error.to_string()),
        },
        _ => content.as_bytes().to_vec(),
    };
    let append = body.get("append").and_then(Value::as_bool).unwrap_or_default();
    let script = if append { "cat >> \"$1\"" } else { "cat > \"$1\"" };
    match run(place, &["/bin/bash", "-c", script, "write", file], &bytes).await {
        Some(output) if output.status.success() => told(json!({"file": file, "bytes_written": bytes.len()})),
        output => failed(output),
    }
}

pub(super) async fn list(place: &Place, body: &Value) -> Response {
    let Some(path) = body.get("path").and_then(Value::as_str) else { return invalid("path") };
    let flag = |key: &str| body.get(key).and_then(Value::as_bool).unwrap_or_default();
    let most = body.get("max_depth").and_then(Value::as_u64).unwrap_or(u64::MAX);
    let depth = if flag("recursive") { most } else { 1 }.min(1000).to_string();
    let words = ["find", path, "-mindepth", "1", "-maxdepth", &depth, "-printf", "%y %s %p\\0"];
    let output = match run(place, &words, b"").await {
        Some(output) if output.status.success() => output,
        output => return failed(output),
    };
    let all = String::from_utf8_lossy(&output.stdout).into_owned();
    let entry = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let (kind, size, at) = (parts.next()?, parts.next()?, parts.next()?);
        let name = at.rsplit('/').next().unwrap_or(at);
        let hidden = name.starts_with('.') && !flag("show_hidden");
        let size = size.parse::<u64>().ok().filter(|_| flag("include_size") && kind != "d");
        let extension = name.rsplit_once('.').map(|(_, end)| format!(".{end}"));
        (!hidden).then(|| {
            json!({
                "name": name, "path": at, "is_directory": kind == "d", "size": size, "modified_time": null,
                "permissions": null, "extension": extension,
            })
        })
    };
    let files: Vec<Value> = all.split('\0').filter_map(entry).collect();
    let folders = files.iter().filter(|file| file["is_directory"] == true).count();
    told(json!({
        "path": path, "total_count": files.len(), "directory_count": folders, "file_count": files.len() - folders,
        "files": files,
    }))
}
