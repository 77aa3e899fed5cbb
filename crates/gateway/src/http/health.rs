//! Health and readiness of the daemon.

use super::json::Json;
use crate::GatewayState;
use axum::http::StatusCode;
use pudu_channels::HealthState;
use pudu_dispatch::local;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The state of the process.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProcessHealth {
    /// Always `healthy`.
    status: &'static str,
    service: &'static str,
    uptime_seconds: u64,
}

/// Reports that the process is alive.
pub(crate) async fn health(gateway: GatewayState) -> Json<ProcessHealth> {
    let uptime_seconds = gateway.0.started.elapsed().as_secs();
    Json(ProcessHealth { status: "healthy", service: "pudu", uptime_seconds })
}

/// Confirmation that LangGraph's server answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServerOk {
    ok: bool,
}

/// Answers like LangGraph's server.
pub(crate) async fn ok() -> Json<ServerOk> {
    Json(ServerOk { ok: true })
}

/// The version of the server and the optional parts of LangGraph's API.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServerInfo {
    service: &'static str,
    version: &'static str,
    flags: ServerFlags,
}

/// Optional parts of the server.
#[derive(Serialize, JsonSchema)]
struct ServerFlags {
    assistants: bool,
    crons: bool,
    langsmith: bool,
}

/// Returns the version, and which optional parts of LangGraph's API exist.
pub(crate) async fn info() -> Json<ServerInfo> {
    let flags = ServerFlags { assistants: true, crons: false, langsmith: false };
    Json(ServerInfo { service: "pudu", version: env!("CARGO_PKG_VERSION"), flags })
}

/// Reports readiness: the store answers, at least one account has room for messages, a model is configured, at least
/// one platform is connected if any is configured, and the daemon is not shutting down. A disconnected platform is only
/// named, because restarting the daemon would disconnect all the others.
pub(crate) async fn ready(gateway: GatewayState) -> (StatusCode, Json<Value>) {
    let shared = &gateway.0.shared;
    let store = shared.db.ping().await.is_ok();
    let model = !shared.agent.models().is_empty();
    let draining = shared.drain.is_cancelled();
    let mut channels = serde_json::Map::new();
    let (mut ready_bots, mut away, mut full) = (0, Vec::new(), Vec::new());
    for (name, account) in shared.accounts.all() {
        let state = account.channel().health().state;
        channels.insert(name.clone(), json!(state));
        if shared.inbox.is_full(&name) {
            full.push(name.clone());
        }
        match state {
            // The page's account is always ready, so it does not count as a connected platform.
            _ if name == local::ACCOUNT => {}
            HealthState::Ready => ready_bots += 1,
            _ => away.push(name),
        }
    }
    let platforms = channels.keys().filter(|name| *name != local::ACCOUNT);
    let room = match platforms.clone().count() {
        0 => full.is_empty(),
        _ => platforms.clone().any(|name| !full.contains(name)),
    };
    let connected = ready_bots > 0 || away.is_empty();
    let ready = store && room && model && connected && !draining;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let facts = json!({
        "ready": ready,
        "store": store,
        "inbox_has_room": room,
        "full": full,
        "model": model,
        "draining": draining,
        "away": away,
        "channels": channels,
    });
    (status, Json(facts))
}
