//! Available models, and enabled parts of the API. Responses have DeerFlow's shapes.

use crate::{ApiError, GatewayState, Json};
use axum::extract::Path;
use pudu_langgraph::model::{ListedModel, ModelList, Switched};
use schemars::JsonSchema;
use serde::Serialize;

/// Lists the models, the default first.
pub(crate) async fn list(gateway: GatewayState) -> Json<ModelList> {
    Json(gateway.client().list_models())
}

/// Shows one model.
pub(crate) async fn show(
    gateway: GatewayState,
    Path(name): Path<String>,
) -> Result<Json<ListedModel>, ApiError> {
    let model = gateway.client().get_model(&name);
    model.map(Json).ok_or_else(|| ApiError::not_found(format!("Model '{name}' not found")))
}

/// Optional parts of the API.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ApiFeatures {
    agents_api: Switched,
    browser_control: Switched,
    mcp_tasks: Switched,
}

/// Returns which optional parts of the API are enabled.
pub(crate) async fn features(gateway: GatewayState) -> Json<ApiFeatures> {
    Json(ApiFeatures {
        agents_api: Switched { enabled: gateway.config().agents_api },
        browser_control: Switched { enabled: false },
        mcp_tasks: Switched { enabled: false },
    })
}
