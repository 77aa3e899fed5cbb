//! Accounts, as an administrator looks after them.

use super::{
    super::{GatewayState, caller::Caller, errors::refuse},
    answer::{self, told},
};
use crate::json::{BodyRejection, Json};
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_people::accounts;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

/// An account that is to be made.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AccountOrder {
    email: String,
    #[schemars(with = "String")]
    password: SecretString,
    #[serde(default)]
    admin: bool,
}

/// A password that is to be set.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SetPassword {
    #[schemars(with = "String")]
    password: SecretString,
}

/// Lists the accounts that sign in.
pub(super) async fn list(State(gateway): State<GatewayState>) -> Response {
    match gateway.0.shared.db.user_accounts().await {
        Ok(all) => {
            Json(json!({ "accounts": all.iter().map(accounts::listed).collect::<Vec<_>>() })).into_response()
        }
        Err(error) => answer::unstored(&error),
    }
}

/// Makes an account.
pub(super) async fn add(
    State(gateway): State<GatewayState>,
    caller: Caller,
    body: Result<Json<AccountOrder>, BodyRejection>,
) -> Response {
    let order = match body {
        Ok(Json(order)) => order,
        Err(error) => return refuse(error.status(), &error.body_text()),
    };
    let (db, passwords) = (&gateway.0.shared.db, &gateway.0.sign_in.passwords);
    let role = if order.admin { accounts::ADMIN } else { accounts::USER };
    match accounts::add(db, caller.audit_name(), passwords, &order.email, &order.password, role).await {
        Ok(account) => {
            tracing::info!(user = %account.user, role, "added account");
            (StatusCode::CREATED, Json(accounts::listed(&account))).into_response()
        }
        Err(error) => told(&error),
    }
}

/// Sets a password.
pub(super) async fn set_password(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(who): Path<String>,
    body: Result<Json<SetPassword>, BodyRejection>,
) -> Response {
    let wanted = match body {
        Ok(Json(wanted)) => wanted,
        Err(error) => return refuse(error.status(), &error.body_text()),
    };
    let (db, passwords) = (&gateway.0.shared.db, &gateway.0.sign_in.passwords);
    match accounts::set_password(db, caller.audit_name(), passwords, &who, &wanted.password).await {
        Ok(account) => Json(accounts::listed(&account)).into_response(),
        Err(error) => told(&error),
    }
}

/// Gives an account the data that was held without one.
pub(super) async fn adopt(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(who): Path<String>,
) -> Response {
    let shared = &gateway.0.shared;
    match accounts::adopt(&shared.db, caller.audit_name(), &who, shared.rules().unpaired).await {
        Ok(account) => {
            shared.adopt().await;
            Json(accounts::listed(&account)).into_response()
        }
        Err(error) => told(&error),
    }
}

/// Removes an account.
pub(super) async fn remove(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(who): Path<String>,
) -> Response {
    match accounts::remove(&gateway.0.shared.db, caller.audit_name(), &who).await {
        Ok(account) => {
            tracing::info!(user = %account.user, "removed account");
            Json(accounts::listed(&account)).into_response()
        }
        Err(error) => told(&error),
    }
}
