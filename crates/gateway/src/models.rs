//! Models that can be chosen, and parts of the API that are on. Shapes are DeerFlow's.

use super::{GatewayState, errors::refuse};
use crate::json::Json;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_client::wire::model::ModelList;
use serde_json::{Value, json};

/// Lists the models, the default first.
pub(super) async fn list(State(gateway): State<GatewayState>) -> Json<ModelList> {
    Json(gateway.0.shared.client.list_models())
}

/// Shows one model.
pub(super) async fn show(State(gateway): State<GatewayState>, Path(name): Path<String>) -> Response {
    match gateway.0.shared.client.get_model(&name) {
        Some(model) => Json(model).into_response(),
        None => refuse(StatusCode::NOT_FOUND, &format!("Model '{name}' not found")),
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
