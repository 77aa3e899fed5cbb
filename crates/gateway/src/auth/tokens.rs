//! Tokens for programs: the caller's own, and every user's for an administrator. A token's text is shown once.

use super::{
    super::{GatewayState, errors::refuse},
    answer::{told, unstored},
    identify::CallerProof,
};
use crate::{
    caller::Caller,
    json::{BodyRejection, Json},
};
use axum::{
    Extension,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_client::base::UserId;
use pudu_people::accounts::{self, AccountError, TokenOrder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// A token that is wanted.
#[derive(Deserialize, JsonSchema)]
pub(super) struct WantedToken {
    name: String,
    scopes: Vec<String>,
    expires_in_days: Option<i64>,
    /// For an administrator: the user of the token. The caller's own routes ignore it.
    user: Option<String>,
}

impl WantedToken {
    fn order(self) -> TokenOrder {
        TokenOrder { name: self.name, scopes: self.scopes, days: self.expires_in_days }
    }
}

/// Lists one's own tokens.
pub(super) async fn own(
    State(gateway): State<GatewayState>,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
) -> Response {
    if let Some(refusal) = not_a_person(&proof) {
        return refusal;
    }
    match gateway.0.shared.db.api_tokens(Some(&caller.user)).await {
        Ok(all) => Json(all.iter().map(accounts::shown_token).collect::<Vec<_>>()).into_response(),
        Err(error) => unstored(&error),
    }
}

/// Makes oneself a token.
pub(super) async fn add_own(
    State(gateway): State<GatewayState>,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
    body: Result<Json<WantedToken>, BodyRejection>,
) -> Response {
    if let Some(refusal) = not_a_person(&proof) {
        return refusal;
    }
    match body {
        Ok(Json(wanted)) => make(&gateway, &caller, &caller.user, wanted).await,
        Err(error) => refuse(error.status(), &error.body_text()),
    }
}

/// Revokes a token of one's own.
pub(super) async fn revoke_own(
    State(gateway): State<GatewayState>,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    match not_a_person(&proof) {
        Some(refusal) => refusal,
        None => revoked(&gateway, &caller, &id, Some(&caller.user)).await,
    }
}

/// Lists the tokens of all users.
pub(super) async fn all(State(gateway): State<GatewayState>) -> Response {
    match gateway.0.shared.db.api_tokens(None).await {
        Ok(all) => Json(json!({ "tokens": all.iter().map(accounts::shown_token_of).collect::<Vec<_>>() }))
            .into_response(),
        Err(error) => unstored(&error),
    }
}

/// Makes a token for a user; for the local user if none is named.
pub(super) async fn add(
    State(gateway): State<GatewayState>,
    caller: Caller,
    body: Result<Json<WantedToken>, BodyRejection>,
) -> Response {
    let wanted = match body {
        Ok(Json(wanted)) => wanted,
        Err(error) => return refuse(error.status(), &error.body_text()),
    };
    let user = match &wanted.user {
        None => UserId::local(),
        Some(who) => match accounts::find(&gateway.0.shared.db, who).await {
            Ok(account) => account.user,
            Err(error) => return told(&error),
        },
    };
    make(&gateway, &caller, &user, wanted).await
}

/// Revokes a token of any user.
pub(super) async fn revoke(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    revoked(&gateway, &caller, &id, None).await
}

/// Refuses callers without a session: a leaked token would create new ones for itself.
fn not_a_person(proof: &CallerProof) -> Option<Response> {
    let told = "This endpoint requires interactive session authentication";
    (!matches!(proof, CallerProof::Session(_))).then(|| refuse(StatusCode::FORBIDDEN, told))
}

async fn make(gateway: &GatewayState, caller: &Caller, user: &UserId, wanted: WantedToken) -> Response {
    match accounts::add_token(&gateway.0.shared.db, caller.audit_name(), user, wanted.order()).await {
        Ok((token, text)) => {
            let mut shown = accounts::shown_token(&token);
            shown["token"] = text.into();
            (StatusCode::CREATED, Json(shown)).into_response()
        }
        // As DeerFlow answers.
        Err(error @ AccountError::Token(_)) => refuse(StatusCode::BAD_REQUEST, &error.to_string()),
        Err(error) => told(&error),
    }
}

async fn revoked(gateway: &GatewayState, caller: &Caller, id: &str, user: Option<&UserId>) -> Response {
    match accounts::revoke_token(&gateway.0.shared.db, caller.audit_name(), id, user).await {
        Ok(()) => Json(json!({ "message": "Token revoked" })).into_response(),
        Err(error) => told(&error),
    }
}
