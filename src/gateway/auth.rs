//! Sign-in, as DeerFlow's web frontend knows it: sessions in cookies, accounts with passwords, tokens for programs.
//!
//! `identify.rs` says who makes a request; everything else is the routes under `/api/v1/auth`, and those by which an
//! administrator looks after accounts.

mod accounts;
mod answer;
pub(super) mod cookies;
mod desk;
mod identify;
mod limits;
mod login;
mod oidc;
pub(super) mod origin;
mod password;
mod scopes;
mod session;
mod status;
mod tokens;

pub(crate) use desk::SignIn;
pub(super) use identify::{Proof, ShownRequest, identify, operator};

use super::{GatewayState, guard, page};
use axum::{
    Router, middleware,
    routing::{delete, get, post, put},
};

/// Routes that ask for no proof, or bring it.
pub(super) fn open_routes(gateway: &GatewayState) -> Router<GatewayState> {
    let asked = Router::new()
        .route("/api/v1/auth/setup-status", get(status::setup))
        .route("/api/v1/auth/providers", get(oidc::list))
        .route("/api/v1/auth/oauth/{provider}", get(oidc::begin))
        .route("/api/v1/auth/callback/{provider}", get(oidc::finish))
        .route("/auth/callback", get(oidc::landed))
        .route("/login", get(page::page))
        .route_layer(middleware::from_fn_with_state(gateway.clone(), guard::same_site));
    Router::new()
        .route("/api/v1/auth/login/local", post(login::login))
        .route("/api/v1/auth/register", post(login::register))
        .route("/api/v1/auth/initialize", post(login::initialize))
        .route("/api/v1/auth/logout", post(login::logout))
        .route("/api/session", post(guard::session))
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
