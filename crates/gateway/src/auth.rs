//! Sign-in compatible with DeerFlow's web frontend: sessions in cookies, accounts with passwords, tokens for programs.
//!
//! `identify.rs` identifies the caller of a request. The folder also contains the routes under `/api/v1/auth`, and
//! those that let administrators manage accounts.

mod accounts;
pub(super) mod admit;
mod answer;
pub(super) mod caller;
pub(super) mod cookies;
mod desk;
pub(super) mod guard;
mod identify;
mod limits;
mod login;
mod oidc;
pub(super) mod origin;
mod password;
mod scopes;
mod session;
mod status;
mod stream_watch;
pub mod token;
mod tokens;

pub(super) use caller::Caller;
pub(super) use cookies::{CSRF_HEADER, OPERATOR as PAGE_COOKIE, SESSION as SESSION_COOKIE};
pub use desk::SignIn;
pub(super) use identify::{CallerProof, ShownRequest, identify, operator};

use crate::{
    GatewayState,
    openapi::{Routes, about, delete, get, post, put},
    page,
};
use axum::{http::Method, middleware};

/// Shape of the token list.
const TOKENS: &str = "{tokens: [Token]}";

/// Returns the scopes that a program's token needs for a route, excluding scopes that the query may add.
pub(super) fn scopes(method: &Method, path: &str) -> &'static [&'static str] {
    match scopes::needed(method, path, None) {
        scopes::ScopeNeed::Scopes(scopes) => scopes,
        scopes::ScopeNeed::Person => &[],
    }
}

/// Returns the routes that need no credentials or check them themselves.
pub(super) fn open_routes(gateway: &GatewayState) -> Routes {
    let same_site_routes = Routes::new("sign-in")
        .at(
            "/api/v1/auth/setup-status",
            get(status::setup, "Returns whether the first administrator must be created."),
        )
        .at("/api/v1/auth/providers", get(oidc::list, "Lists providers of sign-in."))
        .at(
            "/api/v1/auth/oauth/{provider}",
            get(oidc::begin, about("Starts a sign-in with a provider.").gives_nothing(302).fails(&[404])),
        )
        .at(
            "/api/v1/auth/callback/{provider}",
            get(oidc::finish, about("Completes a sign-in with a provider.").gives_nothing(302).fails(&[404])),
        )
        .at(
            "/auth/callback",
            get(oidc::redirect, about("Redirects after a sign-in with a provider.").gives_nothing(303)),
        )
        .at("/login", get(page::page, about("Serves the page.").sends(200, "text/html").gives_nothing(304)))
        .behind(middleware::from_fn_with_state(gateway.clone(), guard::same_site));
    Routes::new("sign-in")
        .at(
            "/api/v1/auth/login/local",
            post(login::login, about("Signs in by e-mail address and password.").fails(&[401, 429])),
        )
        .at(
            "/api/v1/auth/register",
            post(
                login::register,
                about("Creates an account for the caller.").gives_with(201, "Account").fails(&[400, 429]),
            ),
        )
        .at(
            "/api/v1/auth/initialize",
            post(
                login::initialize,
                about("Creates the first administrator.")
                    .gives_with(201, "Account")
                    .fails(&[400, 401, 409, 429]),
            ),
        )
        .at("/api/v1/auth/logout", post(login::logout, "Ends the session of this browser."))
        .at(
            "/api/session",
            post(
                guard::session,
                about("Exchanges the token for a browser's cookie.").gives_nothing(204).fails(&[401, 429]),
            ),
        )
        .behind(middleware::from_fn_with_state(gateway.clone(), login::same_origin))
        .merge(same_site_routes)
}

/// Returns the routes of signed-in users.
pub(super) fn own_routes() -> Routes {
    let tokens = || {
        get(tokens::own, about("Lists the caller's API tokens.").gives(TOKENS)).post(
            tokens::add_own,
            about("Creates an API token, which is shown once.").gives_with(201, "Token"),
        )
    };
    let token = || delete(tokens::revoke_own, "Revokes one of the caller's API tokens.");
    Routes::new("sign-in")
        .at("/api/v1/auth/me", get(status::me, about("Shows the caller's account.").gives("Account")))
        .at(
            "/api/v1/auth/change-password",
            post(password::change, about("Changes the caller's password.").fails(&[400])),
        )
        .at("/api/v1/auth/tokens", tokens())
        .at("/api/v1/auth/tokens/{id}", token())
        .at("/api/v1/auth/pats", tokens())
        .at("/api/v1/auth/pats/{id}", token())
}

/// Returns the routes of administrators.
pub(super) fn operator_routes() -> Routes {
    Routes::new("accounts")
        .at(
            "/api/accounts",
            get(accounts::list, about("Lists the accounts.").gives("{accounts: [Account]}"))
                .post(accounts::add, about("Creates an account.").gives_with(201, "Account").fails(&[409])),
        )
        .at("/api/accounts/{who}", delete(accounts::remove, about("Removes an account.").gives("Account")))
        .at(
            "/api/accounts/{who}/password",
            put(
                accounts::set_password,
                about("Sets the password of an account and ends its sessions.").gives("Account"),
            ),
        )
        .at(
            "/api/accounts/{who}/adopt",
            post(
                accounts::adopt,
                about("Transfers the threads and the memory from before sign-in to an account.")
                    .gives("Account"),
            ),
        )
        .at(
            "/api/tokens",
            get(tokens::all, about("Lists the API tokens of all users.").gives(TOKENS)).post(
                tokens::add,
                about("Creates an API token for a user.").gives_with(201, "Token").fails(&[404]),
            ),
        )
        .at("/api/tokens/{id}", delete(tokens::revoke, "Revokes an API token of any user."))
}
