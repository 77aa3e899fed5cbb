//! Sign-in, as DeerFlow's web frontend knows it: sessions in cookies, accounts with passwords, tokens for programs.
//!
//! `identify.rs` says who makes a request; everything else is the routes under `/api/v1/auth`, and those by which an
//! administrator looks after accounts.

mod accounts;
pub(super) mod cookies;
mod identify;
mod limits;
mod login;
pub(super) mod origin;
mod password;
mod scopes;
mod session;
mod status;
mod tokens;

pub(super) use identify::{Proof, ShownRequest, identify, operator};

use super::{GatewayState, errors, guard};
use crate::{accounts::AccountError, config::AuthConfig, passwords::Passwords};
use anyhow::Result;
use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{delete, get, post, put},
};
use limits::{AttemptKey, AttemptLimits};
use pudu_client::store::StoreError;
use serde_json::json;
use session::SessionKey;
use std::{path::Path, time::Duration};
use tokio::time::Instant;

/// Everything that sign-in keeps.
pub(crate) struct SignIn {
    pub(super) config: AuthConfig,
    key: SessionKey,
    passwords: Passwords,
    limits: AttemptLimits,
}

impl SignIn {
    /// Reads the key of a home, or makes it.
    pub(crate) fn open(config: &AuthConfig, home: &Path) -> Result<Self> {
        let key = SessionKey::open(config.jwt_secret.as_ref(), home)?;
        if config.disabled {
            tracing::warn!(
                "SIGN-IN IS OFF: DEER_FLOW_AUTH_DISABLED makes everybody who reaches the gateway an administrator"
            );
        }
        let (passwords, limits) = (Passwords::default(), AttemptLimits::default());
        Ok(Self { config: config.clone(), key, passwords, limits })
    }

    /// Counts an attempt; returns the answer if there were too many.
    fn attempt(&self, keys: &[AttemptKey], what: &str) -> Option<Response> {
        self.limits.begin(keys, Instant::now()).err().map(|left| too_many(what, left))
    }
}

fn too_many(what: &str, left: Duration) -> Response {
    let told = format!("Too many {what} attempts. Try again later.");
    let seconds = left.as_secs().max(1).to_string();
    ([(header::RETRY_AFTER, seconds)], errors::refuse(StatusCode::TOO_MANY_REQUESTS, &told)).into_response()
}

/// Routes that ask for no proof, or bring it.
pub(super) fn open_routes(gateway: &GatewayState) -> Router<GatewayState> {
    let asked = Router::new()
        .route("/api/v1/auth/setup-status", get(status::setup))
        .route("/api/v1/auth/providers", get(status::providers))
        .route("/api/v1/auth/oauth/{provider}", get(status::no_provider))
        .route("/api/v1/auth/callback/{provider}", get(status::no_provider))
        .route_layer(middleware::from_fn_with_state(gateway.clone(), guard::same_site));
    Router::new()
        .route("/api/v1/auth/login/local", post(login::login))
        .route("/api/v1/auth/register", post(login::register))
        .route("/api/v1/auth/initialize", post(login::initialize))
        .route("/api/v1/auth/logout", post(login::logout))
        .route_layer(middleware::from_fn_with_state(gateway.clone(), login::same_origin))
        .merge(asked)
}

/// Routes of whoever is signed in.
pub(super) fn own_routes() -> Router<GatewayState> {
    Router::new()
        .route("/api/v1/auth/me", get(status::me))
        .route("/api/v1/auth/change-password", post(password::change))
        .route("/api/v1/auth/tokens", get(tokens::own).post(tokens::add_own))
        .route("/api/v1/auth/tokens/{id}", delete(tokens::revoke_own))
        .route("/api/v1/auth/pats", get(tokens::own).post(tokens::add_own))
        .route("/api/v1/auth/pats/{id}", delete(tokens::revoke_own))
}

/// Routes of administrators.
pub(super) fn operator_routes() -> Router<GatewayState> {
    Router::new()
        .route("/api/accounts", get(accounts::list).post(accounts::add))
        .route("/api/accounts/{who}", delete(accounts::remove))
        .route("/api/accounts/{who}/password", put(accounts::set_password))
        .route("/api/tokens", get(tokens::all).post(tokens::add))
        .route("/api/tokens/{id}", delete(tokens::revoke))
}

/// An error with a code, in the form that DeerFlow's frontend reads.
fn coded(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "detail": { "code": code, "message": message } }))).into_response()
}

/// An error about a field of the body, in the form of DeerFlow's framework. It does not repeat the field, which may be a password.
fn invalid(field: &str, message: &str) -> Response {
    let detail = json!([{ "type": "value_error", "loc": ["body", field], "msg": message, "input": null }]);
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": detail }))).into_response()
}

fn unstored(error: &StoreError) -> Response {
    tracing::error!(%error, "failed to look up an account");
    errors::refuse(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer: try again in a moment")
}

fn broken(error: &anyhow::Error) -> Response {
    tracing::error!("failed to sign in: {error:#}");
    errors::refuse(StatusCode::INTERNAL_SERVER_ERROR, "that could not be done just now; the log says why")
}

/// An error as an administrator is told it.
fn told(error: &AccountError) -> Response {
    let status = match error {
        AccountError::NoEmail(_) | AccountError::Password(_) | AccountError::Token(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        AccountError::Taken(_) => StatusCode::CONFLICT,
        AccountError::Unknown(_) | AccountError::NoToken => StatusCode::NOT_FOUND,
        AccountError::Store(error) => return unstored(error),
        AccountError::Failed(error) => return broken(error),
    };
    errors::refuse(status, &error.to_string())
}

/// Begins a session with an answer.
fn with_session(
    sign_in: &SignIn,
    headers: &HeaderMap,
    account: &pudu_client::store::UserAccount,
    remember: Option<bool>,
    answer: impl IntoResponse,
) -> Response {
    let policy = cookies::CookiePolicy::of(headers, remember, sign_in.config.insecure_persistence);
    let now = crate::clock::now() / 1000;
    let session = sign_in.key.issue(&account.user, account.token_version, now);
    match session.and_then(|session| cookies::begin(policy, &session)) {
        Ok(set) => {
            let mut answer = answer.into_response();
            cookies::put(set, &mut answer);
            answer
        }
        Err(error) => broken(&error),
    }
}
