//! State of sign-in: the account of this browser, and whether there can be one.

use super::{
    super::GatewayState,
    answer::{coded, unstored},
    identify::CallerProof,
};
use crate::{caller::Caller, json::Json};
use axum::{
    Extension,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_people::accounts;
use serde_json::json;

/// Shows the account that is signed in.
pub(super) async fn me(
    State(gateway): State<GatewayState>,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
) -> Response {
    match proof {
        CallerProof::Session(account) => Json(accounts::to_json(&account)).into_response(),
        CallerProof::Local => coded(StatusCode::UNAUTHORIZED, "not_authenticated", "Authentication required"),
        CallerProof::Operator | CallerProof::Disabled => Json(json!({
            "id": caller.user, "email": "default@test.local", "system_role": accounts::ADMIN,
            "needs_setup": false, "oauth_provider": null,
        }))
        .into_response(),
        CallerProof::ApiToken(_) | CallerProof::Internal => {
            match gateway.0.shared.db.within(STORE_TIMEOUT).account_of(&caller.user).await {
                Ok(Some(account)) => Json(accounts::to_json(&account)).into_response(),
                Ok(None) => Json(json!({
                    "id": caller.user, "email": "default@test.local", "system_role": accounts::USER,
                    "needs_setup": false, "oauth_provider": null,
                }))
                .into_response(),
                Err(error) => unstored(&error),
            }
        }
    }
}

/// Shows whether an administrator is still to be made, and whether visitors may make themselves an account.
pub(super) async fn setup(State(gateway): State<GatewayState>) -> Response {
    match gateway.0.shared.db.within(STORE_TIMEOUT).has_administrator().await {
        Ok(there) => Json(json!({
            "needs_setup": !there,
            "registration_enabled": gateway.0.watcher.current().registration,
        }))
        .into_response(),
        Err(error) => unstored(&error),
    }
}
