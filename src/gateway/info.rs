//! What there is: models, channels and commands.

use super::Gateway;
use crate::dispatch::command;
use axum::{Json, extract::State};
use pudu_channels::HealthState;
use serde_json::{Map, Value, json};

/// Lists the models, the default first.
pub(super) async fn models(State(gateway): State<Gateway>) -> Json<Value> {
    let models = gateway.0.shared.client.models();
    let entry = |model: &pudu_client::ModelInfo| json!({ "name": model.name, "display_name": model.title, "description": model.about });
    Json(json!({ "models": models.iter().map(entry).collect::<Vec<_>>() }))
}

/// Lists the channels and how they are doing.
pub(super) async fn channels(State(gateway): State<Gateway>) -> Json<Value> {
    let mut channels = Map::new();
    for (name, account) in &gateway.0.shared.accounts {
        let health = account.channel.health();
        let running = matches!(health.state, HealthState::Ready | HealthState::Degraded);
        let entry = json!({
            "enabled": true,
            "running": running,
            "state": health.state,
            "last_event": health.last_event,
            "last_error": health.last_error,
        });
        channels.insert(name.clone(), entry);
    }
    Json(json!({ "service_running": true, "channels": channels }))
}

/// Lists the slash commands, in the order in which help shows them.
pub(super) async fn commands() -> Json<Value> {
    let entry = |row: &command::Row| json!({ "name": row.name, "argument": row.argument, "help": row.help });
    Json(json!({ "commands": command::TABLE.iter().map(entry).collect::<Vec<_>>() }))
}
