//! Lists of channels and commands.

use super::{GatewayState, answers::Confirmation, caller::Caller, chat, errors::ApiError, json::Json};
use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use pudu_channels::HealthState;
use pudu_client::net::scrub;
use pudu_dispatch::{commands, local};
use schemars::JsonSchema;
use serde::Serialize;
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
) -> Result<Json<Confirmation>, ApiError> {
    let hot = gateway.config();
    gateway.0.connections.restart(&name, &hot).await.map_err(|error| {
        let known = gateway.0.shared.accounts.get(&name).is_some();
        let status = if known { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::NOT_FOUND };
        ApiError::new(status, scrub::hide(&format!("{error:#}")))
    })?;
    Ok(Json(Confirmation::of(format!("Channel {name} restarted"))))
}

/// The slash commands, followed by the skills.
#[derive(Serialize, JsonSchema)]
pub(super) struct ListedCommands {
    commands: Vec<ListedCommand>,
}

/// A slash command.
#[derive(Serialize, JsonSchema)]
struct ListedCommand {
    name: String,
    argument: String,
    help: String,
    /// `command` or `skill`.
    kind: &'static str,
    /// Whether it can be run on a thread.
    works_on_threads: bool,
}

/// Lists the slash commands, in the order in which help shows them, and the skills behind them.
pub(super) async fn commands(
    State(gateway): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
) -> Json<ListedCommands> {
    let language = local::language(&gateway.0.shared, chat::preferred(&headers));
    let skills = gateway.client().catalog_of(&caller.user).await.enabled();
    let entry = |(name, argument, help): (&str, &str, String)| ListedCommand {
        name: name.to_owned(),
        argument: argument.to_owned(),
        help,
        kind: if commands::is_command(name) { "command" } else { "skill" },
        works_on_threads: commands::works_on_threads(name),
    };
    Json(ListedCommands { commands: commands::offered(language, &skills).map(entry).collect() })
}
