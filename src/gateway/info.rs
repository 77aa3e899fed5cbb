//! What there is: models and channels.

use super::Gateway;
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
