//! Models that can be chosen, and parts of the API that are on. Shapes are DeerFlow's.

use super::{GatewayState, JsonReply};
use crate::gateway::json::Json;
use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use pudu_client::ModelInfo;
use serde_json::{Value, json};

/// Lists the models, the default first.
pub(super) async fn list(State(gateway): State<GatewayState>) -> Json<Value> {
    let models = gateway.0.shared.client.models();
    let models: Vec<Value> = models.iter().map(|model| gateway.model(model)).collect();
    // Tokens are counted in any case.
    Json(json!({ "models": models, "token_usage": { "enabled": true } }))
}

/// Shows one model.
pub(super) async fn show(State(gateway): State<GatewayState>, Path(name): Path<String>) -> JsonReply {
    let models = gateway.0.shared.client.models();
    match models.iter().find(|model| model.name == name) {
        Some(model) => (StatusCode::OK, Json(gateway.model(model))),
        None => {
            let detail = format!("Model '{name}' not found");
            (StatusCode::NOT_FOUND, Json(json!({ "detail": detail })))
        }
    }
}

/// Answers which parts of the API are on.
pub(super) async fn features(State(gateway): State<GatewayState>) -> Json<Value> {
    let enabled = |enabled: bool| json!({ "enabled": enabled });
    Json(json!({
        "agents_api": enabled(gateway.0.watcher.current().agents_api),
        "browser_control": enabled(false),
        "mcp_tasks": enabled(false),
    }))
}

impl GatewayState {
    /// Writes a model. One that is built in has no configuration.
    fn model(&self, model: &ModelInfo) -> Value {
        let hot = self.0.watcher.current();
        let settings = hot.models.iter().map(|config| &config.settings).find(|own| own.name == model.name);
        let thinking = settings.map(|settings| &settings.thinking);
        json!({
            "name": model.name,
            "model": settings.map_or(&model.name, |settings| &settings.model),
            "display_name": model.title,
            "description": model.about,
            "supports_thinking": thinking.is_some_and(|thinking| thinking.supported),
            "supports_reasoning_effort": thinking.is_some_and(|thinking| thinking.takes_effort),
        })
    }
}
