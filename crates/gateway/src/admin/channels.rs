//! Channels: their state, and restarts.

use crate::{ApiError, Confirmation, GatewayState, Json};
use axum::{extract::Path, http::StatusCode};
use pudu_channels::HealthState;
use pudu_net::scrub;
use serde_json::{Map, Value, json};

/// Lists the channels and their state.
pub(crate) async fn channels(gateway: GatewayState) -> Json<Value> {
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
pub(crate) async fn restart(
    gateway: GatewayState,
    Path(name): Path<String>,
) -> Result<Json<Confirmation>, ApiError> {
    let hot = gateway.config();
    gateway.0.connections.restart(&name, &hot).await.map_err(|error| {
        let known = gateway.0.shared.accounts.get(&name).is_some();
        let status = if known { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::NOT_FOUND };
        ApiError::new(status, scrub::hide(&format!("{error:#}")))
    })?;
    Ok(Json(Confirmation::with_message(format!("Channel {name} restarted"))))
}
