//! Lists of channels and commands.

use super::{GatewayState, caller::Caller, chat};
use crate::json::Json;
use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use pudu_channels::HealthState;
use pudu_client::net::scrub;
use pudu_dispatch::{commands, local};
use serde_json::{Map, Value, json};

/// Lists the channels and how they are doing.
pub(super) async fn channels(State(gateway): State<GatewayState>) -> Json<Value> {
    let mut channels = Map::new();
    for (name, account) in gateway.0.shared.accounts.all() {
        let health = account.channel().health();
        let running = matches!(health.state, HealthState::Ready | HealthState::Degraded);
        let entry = json!({
            "enabled": true,
            "running": running,
            "state": health.state,
            "last_event": health.last_event,
            "last_error": health.last_error,
        });
        channels.insert(name, entry);
    }
    Json(json!({ "service_running": true, "channels": channels }))
}

/// Reconnects one account; the others are not affected.
pub(super) async fn restart(
    State(gateway): State<GatewayState>,
    Path(name): Path<String>,
) -> (StatusCode, Json<Value>) {
    let hot = gateway.0.watcher.current();
    match gateway.0.connections.restart(&name, &hot).await {
        Ok(()) => {
            (StatusCode::OK, Json(json!({ "success": true, "message": format!("Channel {name} restarted") })))
        }
        Err(error) => {
            let known = gateway.0.shared.accounts.get(&name).is_some();
            let status = if known { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::NOT_FOUND };
            (status, Json(json!({ "detail": scrub::hide(&format!("{error:#}")) })))
        }
    }
}

/// Lists the slash commands, in the order in which help shows them, and the skills behind them.
pub(super) async fn commands(
    State(gateway): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
) -> Json<Value> {
    let language = local::language(&gateway.0.shared, chat::preferred(&headers));
    let skills = gateway.0.shared.client.catalog_of(&caller.user).await.enabled();
    let entry = |(name, argument, help)| {
        let threads = commands::works_on_threads(name);
        let kind = if commands::is_command(name) { "command" } else { "skill" };
        json!({ "name": name, "argument": argument, "help": help, "kind": kind, "works_on_threads": threads })
    };
    Json(json!({ "commands": commands::offered(language, &skills).map(entry).collect::<Vec<_>>() }))
}
