//! What the tests share: a configuration from JSON, a call by name, and a look at processes.

pub(crate) use crate::context::cx;
use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_base::{Tool, ToolError};
use pudu_mcp::{McpConfig, Servers};
use serde_json::{Value, json};
use std::{collections::HashMap, fs, path::Path, sync::Arc, time::Duration};

/// The secret of every entry of these tests.
pub(crate) const SECRET: &str = "hunter2-hunter2";

/// Reads a configuration; the daemon's environment has more in it than servers may see.
pub(crate) fn config(servers: &Value) -> McpConfig {
    let vars = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/tmp"),
        ("SERVER_TOKEN", SECRET),
        ("OPENAI_API_KEY", "sk-of-the-daemon"),
    ];
    let vars = vars.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let config =
        McpConfig::parse(&json!({ "mcpServers": servers }).to_string(), &HashMap::from(vars)).unwrap();
    config.guarded_by(Path::new(env!("CARGO_BIN_EXE_mcp-fixture")))
}

/// An entry of the fixture, which starts as `mode` says.
pub(crate) fn fixture(mode: &str) -> Value {
    json!({
        "command": env!("CARGO_BIN_EXE_mcp-fixture"),
        "args": [mode],
        "env": { "TOKEN": "$SERVER_TOKEN" },
    })
}

/// Connects to one server of the name `s`.
pub(crate) async fn connect(entry: &Value) -> Servers {
    Servers::connect(config(&json!({ "s": entry }))).await
}

pub(crate) fn tool(servers: &Servers, name: &str) -> Arc<dyn Tool> {
    servers
        .tools()
        .iter()
        .find(|tool| tool.spec().name == name)
        .unwrap_or_else(|| panic!("no {name}"))
        .clone()
}

/// Calls a tool and returns what the model would read.
pub(crate) async fn call(servers: &Servers, name: &str, args: Value) -> Result<String, String> {
    let answer = tool(servers, name).call(args, &cx()).await;
    answer.map(|output| output.text).map_err(|ToolError(text)| text)
}

pub(crate) fn names(servers: &Servers) -> Vec<String> {
    servers.tools().iter().map(|tool| tool.spec().name.clone()).collect()
}

pub(crate) fn skipped(servers: &Servers) -> Vec<String> {
    servers.skipped().iter().map(ToString::to_string).collect()
}

/// Returns whether a process works: one that ended and was not yet collected does not.
pub(crate) fn works(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits until a process has ended: the system takes a moment for what it was told to do.
pub(crate) async fn ended(pid: &str) {
    let looking = async {
        while works(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), looking).await.unwrap_or_else(|_| panic!("{pid} works on"));
}

/// Answers as a server over HTTP with the tool `go`, whose result is `text`.
pub(crate) fn answer_with_one_tool(message: &Value, text: &str) -> Response {
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "f", "version": "1" }
        }),
        "tools/list" => json!({ "tools": [{ "name": "go", "inputSchema": {} }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": text }] }),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).into_response()
}
