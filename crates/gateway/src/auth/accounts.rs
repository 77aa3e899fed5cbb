//! Management of accounts by administrators.

use super::caller::Caller;
use crate::{AnsweringProcess, ApiError, Created, GatewayState, Json};
use axum::extract::Path;
use pudu_people::accounts;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

/// An account to create.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AccountOrder {
    email: String,
    #[schemars(with = "String")]
    password: SecretString,
    #[serde(default)]
    admin: bool,
}

/// A new password.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SetPassword {
    #[schemars(with = "String")]
    password: SecretString,
}

/// Lists the sign-in accounts.
pub(super) async fn list(gateway: GatewayState) -> Result<Json<Value>, ApiError> {
    let all = gateway.db().user_accounts().await?;
    Ok(Json(json!({ "accounts": all.iter().map(accounts::listed).collect::<Vec<_>>() })))
}

/// Creates an account.
pub(super) async fn add(
    gateway: GatewayState,
    caller: Caller,
    Json(order): Json<AccountOrder>,
) -> Result<Created<Value>, ApiError> {
    let (db, passwords) = (gateway.db(), &gateway.0.sign_in.passwords);
    let role = if order.admin { accounts::ADMIN } else { accounts::USER };
    let account =
        accounts::add(&db, caller.audit_name(), passwords, &order.email, &order.password, role).await?;
    tracing::info!(user = %account.user, role, "added account");
    Ok(Created(accounts::listed(&account)))
}

/// Sets the password of an account.
pub(super) async fn set_password(
    gateway: GatewayState,
    caller: Caller,
    Path(who): Path<String>,
    Json(wanted): Json<SetPassword>,
) -> Result<Json<Value>, ApiError> {
    let (db, passwords) = (gateway.db(), &gateway.0.sign_in.passwords);
    let by = caller.audit_name();
    let account = accounts::set_password(&db, by, passwords, &who, &wanted.password).await?;
    Ok(Json(accounts::listed(&account)))
}

/// Transfers the data stored without an account to an account.
pub(super) async fn adopt(
    gateway: GatewayState,
    caller: Caller,
    Path(who): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let shared = &gateway.0.shared;
    let unpaired = shared.rules().unpaired;
    let account = accounts::adopt(&gateway.db(), caller.audit_name(), &who, unpaired).await?;
    if matches!(gateway.0.process, AnsweringProcess::Daemon(_)) {
        shared.adopt().await;
    }
    Ok(Json(accounts::listed(&account)))
}

/// Deletes an account.
pub(super) async fn remove(
    gateway: GatewayState,
    caller: Caller,
    Path(who): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let account = accounts::remove(&gateway.db(), caller.audit_name(), &who).await?;
    tracing::info!(user = %account.user, "removed account");
    Ok(Json(accounts::listed(&account)))
}
