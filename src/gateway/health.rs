//! Whether the daemon lives, and whether it can do its work.

use super::Gateway;
use axum::{Json, extract::State, http::StatusCode};
use pudu_channels::HealthState;
use serde_json::{Value, json};

/// Says that the process lives.
pub(super) async fn health(State(gateway): State<Gateway>) -> Json<Value> {
    Json(
        json!({ "status": "healthy", "service": "pudu", "uptime_seconds": gateway.0.started.elapsed().as_secs() }),
    )
}

/// Says whether work can be done: the store answers, there is room, there is a model, channels have not
/// been refused, and the daemon is not on its way out.
pub(super) async fn ready(State(gateway): State<Gateway>) -> (StatusCode, Json<Value>) {
    let shared = &gateway.0.shared;
    let store = shared.db.ping().await.is_ok();
    let room = !shared.inbox.full();
    let model = !shared.client.models().is_empty();
    let draining = shared.drain.is_cancelled();
    let mut channels = serde_json::Map::new();
    let mut connected = true;
    for (name, account) in shared.accounts.all() {
        let health = account.channel().health();
        connected &= matches!(health.state, HealthState::Ready);
        channels.insert(name, json!(health.state));
    }
    let ready = store && room && model && connected && !draining;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let facts = json!({
        "ready": ready,
        "store": store,
        "inbox_has_room": room,
        "model": model,
        "draining": draining,
        "channels": channels,
    });
    (status, Json(facts))
}
