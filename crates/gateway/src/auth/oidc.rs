//! Sign-in with an OpenID Connect provider: the authorization code flow. The browser is redirected to the provider and
//! returns with a code, which pudu exchanges for the person's identity.
//!
//! An account belongs to a provider's issuer and subject. An e-mail address never selects an existing account.

mod id_token;
mod login_state;
mod provider;
pub(super) mod providers;
mod ring_provider;

use super::{cookies, desk::with_session, limits::AttemptKey, login, origin};
use crate::{ApiError, GatewayState, Json, Query, http::guests::Visitor};
use axum::{
    Extension,
    extract::{ConnectInfo, Path},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use id_token::PersonClaims;
use login_state::{LoginChecks, LoginState};
use provider::{IdentityProvider, ProviderFault};
use pudu_config::OidcProvider;
use pudu_kit::clock;
use pudu_people::accounts::{self, AccountChange};
use pudu_store::{ProviderAccount, ProviderLogin, StoreError, UserAccount};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use subtle::ConstantTimeEq;
use url::form_urlencoded;

/// Reason for a failed sign-in, as shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignInFailure {
    /// The login failed.
    Failed,
    /// The person may not sign in.
    NotAllowed,
    /// Another account has the e-mail address already.
    AccountExists,
}

impl SignInFailure {
    /// Returns DeerFlow's error code.
    fn code(self) -> &'static str {
        match self {
            Self::Failed => "sso_failed",
            Self::NotAllowed => "sso_not_allowed",
            Self::AccountExists => "sso_account_exists",
        }
    }
}

/// The identity providers available for sign-in.
#[derive(Serialize, JsonSchema)]
pub(super) struct ListedProviders {
    providers: Vec<ListedProvider>,
}

/// An identity provider.
#[derive(Serialize, JsonSchema)]
struct ListedProvider {
    id: String,
    display_name: String,
    /// Always `oidc`.
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Lists the identity providers.
pub(super) async fn list(gateway: GatewayState) -> Json<ListedProviders> {
    let listed = |(id, provider): (&String, &IdentityProvider)| ListedProvider {
        id: id.clone(),
        display_name: provider.config.display_name.clone(),
        kind: "oidc",
    };
    Json(ListedProviders { providers: gateway.0.sign_in.providers.all().map(listed).collect() })
}

/// Options of a sign-in.
#[derive(Deserialize, JsonSchema)]
pub(super) struct LoginWish {
    next: Option<String>,
    #[serde(default = "login::yes")]
    remember_me: bool,
}

/// Redirects a browser to a provider.
pub(super) async fn begin(
    gateway: GatewayState,
    Path(name): Path<String>,
    Query(query): Query<LoginWish>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let sign_in = &gateway.0.sign_in;
    let provider = sign_in.providers.get(&name).ok_or_else(no_provider)?;
    let addresses = match provider.addresses().await {
        Ok(addresses) => addresses,
        Err(fault) => return Ok(failed(&gateway, &name, &fault)),
    };
    let config = &provider.config;
    let uri = match &config.redirect_uri {
        Some(uri) => uri.to_string(),
        None => format!("{}/api/v1/auth/callback/{name}", site(&gateway, &headers)),
    };
    let checks = LoginChecks { nonce: config.has_nonce, pkce: config.has_pkce };
    let login = LoginState::begin(&name, checks, uri, query.next.as_deref(), query.remember_me, seconds())?;
    let cookie = login.cookie(&sign_in.key, origin::is_https(&headers))?;
    let mut answer = found(provider.login_address(&addresses, &login).as_str());
    cookies::put([cookie], answer.headers_mut());
    Ok(answer)
}

/// Returns pudu's public URL as the browser knows it. The provider redirects only to registered URLs.
fn site(gateway: &GatewayState, headers: &HeaderMap) -> String {
    if let Some(url) = &gateway.0.sign_in.config.public_url {
        return url.as_str().trim_end_matches('/').to_owned();
    }
    let scheme = if origin::is_https(headers) { "https" } else { "http" };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    format!("{scheme}://{}", origin::forwarded_host(headers).or(host).unwrap_or_default())
}

/// Response of a provider, passed on by the browser.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ProviderAnswer {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

/// Signs in a person who returns from a provider.
pub(super) async fn finish(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    Query(answer): Query<ProviderAnswer>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let sign_in = &gateway.0.sign_in;
    let provider = sign_in.providers.get(&name).ok_or_else(no_provider)?;
    let keys = [AttemptKey::From("oidc", login::client(sign_in, &headers, peer.ip()))];
    sign_in.attempt(&keys, "login")?;
    let login = LoginState::read(&headers, &name, &sign_in.key, seconds());
    let outcome = match signed_in(&gateway, &name, provider, login.as_ref(), &answer).await {
        Ok(account) => {
            sign_in.limits.succeeded(&keys);
            visitor.prove();
            welcome(&gateway, &headers, login.as_ref(), &account)
        }
        Err(SignInEnd::Back(response)) => Ok((HeaderMap::new(), response)),
        Err(SignInEnd::Error(error)) => Err(error),
    };
    let mut response = outcome.into_response();
    cookies::put(login_state::end(&name, origin::is_https(&headers)), response.headers_mut());
    Ok(response)
}

/// End of a sign-in that begins no session.
enum SignInEnd {
    /// The browser is redirected to the sign-in page.
    Back(Response),
    Error(ApiError),
}

impl<E: Into<ApiError>> From<E> for SignInEnd {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// Begins a session, and redirects the browser to the requested page.
fn welcome(
    gateway: &GatewayState,
    headers: &HeaderMap,
    login: Option<&LoginState>,
    account: &UserAccount,
) -> Result<(HeaderMap, Response), ApiError> {
    let sign_in = &gateway.0.sign_in;
    let next: String =
        form_urlencoded::byte_serialize(login.map_or("/", |login| &login.next).as_bytes()).collect();
    let destination = found(&format!("{}/auth/callback?next={next}", sign_in.providers.frontend()));
    with_session(sign_in, headers, account, login.map(|login| login.remember), destination)
}

async fn signed_in(
    gateway: &GatewayState,
    name: &str,
    provider: &IdentityProvider,
    login: Option<&LoginState>,
    answer: &ProviderAnswer,
) -> Result<UserAccount, SignInEnd> {
    let no = |fault: &ProviderFault| SignInEnd::Back(failed(gateway, name, fault));
    let unfit = |why: &str| no(&ProviderFault::Broken(why.to_owned()));
    let login = login.ok_or_else(|| unfit("this browser has not started a sign-in"))?;
    let state = answer.state.as_deref().unwrap_or_default();
    if !bool::from(state.as_bytes().ct_eq(login.state.as_bytes())) {
        return Err(unfit("the response belongs to a different sign-in"));
    }
    if let Some(error) = &answer.error {
        return Err(unfit(&format!("the provider reported: {}", provider::word(error))));
    }
    let addresses = provider.addresses().await.map_err(|fault| no(&fault))?;
    if answer.iss.as_ref().is_some_and(|issuer| *issuer != addresses.issuer) {
        return Err(unfit("a different provider responded"));
    }
    let code = answer
        .code
        .as_deref()
        .filter(|code| !code.is_empty())
        .ok_or_else(|| unfit("the response has no code"))?;
    let person = provider.person(&addresses, login, code).await.map_err(|fault| no(&fault))?;
    account_of(gateway, name, &provider.config, &addresses.issuer, &person).await
}

/// Finds the account of a person authenticated by a provider. Creates it if the configuration allows that.
async fn account_of(
    gateway: &GatewayState,
    name: &str,
    config: &OidcProvider,
    issuer: &str,
    person: &PersonClaims,
) -> Result<UserAccount, SignInEnd> {
    let denied = |failure: SignInFailure, why: &str| {
        tracing::warn!(provider = name, "refused sign-in by provider: {why}");
        SignInEnd::Back(sent_back(gateway, failure))
    };
    let email = admitted(config, person).map_err(|why| denied(SignInFailure::NotAllowed, why))?;
    let is_admin = person.is_verified() && config.admin_emails.contains(&email.to_lowercase());
    let role = if is_admin { accounts::ADMIN } else { accounts::USER };
    let new = accounts::fresh_of_provider(email, role, name, &person.sub)?;
    let login = ProviderLogin { issuer: issuer.to_owned(), creates: config.creates_users, account: new };
    let db = gateway.db();
    match db.provider_login(login).await? {
        ProviderAccount::Known(account) => Ok(*account),
        ProviderAccount::Added(account) => {
            let (user, noted) = (account.user.as_str(), std::future::ready(Ok::<_, StoreError>(())));
            accounts::audited(&db, user, AccountChange::Add, user, noted).await?;
            tracing::info!(user = %account.user, provider = name, role = account.role, "added account");
            Ok(*account)
        }
        ProviderAccount::Taken => {
            Err(denied(SignInFailure::AccountExists, "another account has this e-mail address"))
        }
        ProviderAccount::Unknown => Err(denied(
            SignInFailure::NotAllowed,
            "the user has no account, and the configuration creates none",
        )),
        ProviderAccount::OtherIssuer => {
            Err(denied(SignInFailure::Failed, "the account is linked to another issuer of this provider"))
        }
    }
}

/// Returns the e-mail address of a person who may sign in, or the reason for the refusal. It is checked at each
/// sign-in, so a person who loses the address loses access.
fn admitted(config: &OidcProvider, person: &PersonClaims) -> Result<String, &'static str> {
    let email_claim = person.email.as_deref().ok_or("the provider sent no e-mail address")?;
    let email = accounts::email(email_claim).ok_or("the provider sent an invalid e-mail address")?;
    if config.requires_verified_email && !person.is_verified() {
        return Err("the e-mail address is not verified");
    }
    let domain = email.rsplit('@').next().unwrap_or_default();
    match config.email_domains.is_empty() || config.email_domains.iter().any(|allowed| allowed == domain) {
        true => Ok(email),
        false => Err("the domain of the e-mail address is not allowed"),
    }
}

fn failed(gateway: &GatewayState, name: &str, fault: &ProviderFault) -> Response {
    tracing::warn!(provider = name, "failed sign-in by provider: {fault}");
    sent_back(gateway, SignInFailure::Failed)
}

/// Redirects a browser to the sign-in page, with the reason.
fn sent_back(gateway: &GatewayState, why: SignInFailure) -> Response {
    found(&format!("{}/login?error={}", gateway.0.sign_in.providers.frontend(), why.code()))
}

fn no_provider() -> ApiError {
    let why = "SSO authentication is not enabled, or the provider is unknown";
    ApiError::coded(StatusCode::NOT_FOUND, "provider_not_found", why)
}

/// Redirects a browser. The response is not cached and sends no referrer, because the URL may contain a code.
fn found(place: &str) -> Response {
    let fixed = [(header::CACHE_CONTROL, "no-store"), (header::REFERRER_POLICY, "no-referrer")];
    (StatusCode::FOUND, fixed, [(header::LOCATION, place)]).into_response()
}

fn seconds() -> i64 {
    clock::now() / 1000
}

/// Redirects a browser from the landing path of DeerFlow's frontend to pudu's own page.
pub(super) async fn redirect() -> Redirect {
    Redirect::to("/")
}
