//! Tokens for programs: the caller's own, and all users' for an administrator. A token's text is shown once.

use super::{caller::Caller, identify::CallerProof};
use crate::{ApiError, Created, GatewayState, Json, http::NoticeAnswer, openapi::Described};
use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use pudu_base::UserId;
use pudu_people::accounts::{self, AccountError, TokenOrder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A token to create.
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

/// Lists the caller's own tokens.
pub(super) async fn own(
    gateway: GatewayState,
    _: SignedInPerson,
    caller: Caller,
) -> Result<Json<Vec<Value>>, ApiError> {
    let all = gateway.db().api_tokens(Some(&caller.user)).await?;
    Ok(Json(all.iter().map(accounts::shown_token).collect()))
}

/// Creates a token for the caller.
pub(super) async fn add_own(
    gateway: GatewayState,
    _: SignedInPerson,
    caller: Caller,
    Json(wanted): Json<WantedToken>,
) -> Result<Created<Value>, ApiError> {
    make(&gateway, &caller, &caller.user, wanted).await
}

/// Revokes one of the caller's tokens.
pub(super) async fn revoke_own(
    gateway: GatewayState,
    _: SignedInPerson,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<NoticeAnswer>, ApiError> {
    revoked(&gateway, &caller, &id, Some(&caller.user)).await
}

/// Lists the tokens of all users.
pub(super) async fn all(gateway: GatewayState) -> Result<Json<Value>, ApiError> {
    let all = gateway.db().api_tokens(None).await?;
    Ok(Json(json!({ "tokens": all.iter().map(accounts::shown_token_of).collect::<Vec<_>>() })))
}

/// Creates a token for a user; for the local user if none is named.
pub(super) async fn add(
    gateway: GatewayState,
    caller: Caller,
    Json(wanted): Json<WantedToken>,
) -> Result<Created<Value>, ApiError> {
    let user = match &wanted.user {
        None => UserId::local(),
        Some(who) => accounts::find(&gateway.db(), who).await?.user,
    };
    make(&gateway, &caller, &user, wanted).await
}

/// Revokes a token of any user.
pub(super) async fn revoke(
    gateway: GatewayState,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<NoticeAnswer>, ApiError> {
    revoked(&gateway, &caller, &id, None).await
}

/// A caller with a session. Other callers may not create tokens: a leaked token could otherwise replicate itself.
pub(crate) struct SignedInPerson;

impl Described for SignedInPerson {}

impl<S: Sync> FromRequestParts<S> for SignedInPerson {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match parts.extensions.get() {
            Some(CallerProof::Session(_)) => Ok(Self),
            _ => Err(ApiError::forbidden("This endpoint requires interactive session authentication")),
        }
    }
}

async fn make(
    gateway: &GatewayState,
    caller: &Caller,
    user: &UserId,
    wanted: WantedToken,
) -> Result<Created<Value>, ApiError> {
    let created = accounts::add_token(&gateway.db(), caller.audit_name(), user, wanted.order()).await;
    let (token, text) = created.map_err(|error| match error {
        // The same status as in DeerFlow.
        AccountError::Token(_) => ApiError::bad_request(error.to_string()),
        error => error.into(),
    })?;
    let mut body = accounts::shown_token(&token);
    body["token"] = text.into();
    Ok(Created(body))
}

async fn revoked(
    gateway: &GatewayState,
    caller: &Caller,
    id: &str,
    user: Option<&UserId>,
) -> Result<Json<NoticeAnswer>, ApiError> {
    accounts::revoke_token(&gateway.db(), caller.audit_name(), id, user).await?;
    Ok(Json(NoticeAnswer { message: "Token revoked" }))
}
