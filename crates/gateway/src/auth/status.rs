//! State of sign-in: the account of this browser, and whether accounts can be created.

use super::{caller::Caller, identify::CallerProof};
use crate::{ApiError, GatewayState, Json};
use axum::{Extension, http::StatusCode};
use pudu_people::accounts;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// Shows the signed-in account.
pub(super) async fn me(
    gateway: GatewayState,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
) -> Result<Json<Value>, ApiError> {
    let placeholder = |role: &str| {
        json!({
            "id": caller.user, "email": "default@test.local", "system_role": role,
            "needs_setup": false, "oauth_provider": null,
        })
    };
    Ok(Json(match proof {
        CallerProof::Session(account) => accounts::to_json(&account),
        CallerProof::Local => {
            let why = "Authentication required";
            return Err(ApiError::coded(StatusCode::UNAUTHORIZED, "not_authenticated", why));
        }
        CallerProof::Operator | CallerProof::Disabled => placeholder(accounts::ADMIN),
        CallerProof::ApiToken(_) | CallerProof::Internal => {
            let account = gateway.db().account_of(&caller.user).await?;
            account.map_or_else(|| placeholder(accounts::USER), |account| accounts::to_json(&account))
        }
    }))
}

/// State of an installation's accounts.
#[derive(Serialize, JsonSchema)]
pub(super) struct SetupStatus {
    /// Whether the first administrator still has to be created.
    needs_setup: bool,
    /// Whether visitors may register accounts.
    registration_enabled: bool,
}

/// Shows whether the first administrator still has to be created, and whether visitors may register accounts.
pub(super) async fn setup(gateway: GatewayState) -> Result<Json<SetupStatus>, ApiError> {
    let needs_setup = !gateway.db().has_administrator().await?;
    Ok(Json(SetupStatus { needs_setup, registration_enabled: gateway.config().registration }))
}
