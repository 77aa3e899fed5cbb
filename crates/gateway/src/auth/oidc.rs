//! Sign-in by a provider that speaks OpenID Connect: the authorization code flow. The browser is sent to the provider
//! and comes back with a code, which the provider exchanges for the person's identity.
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
use pudu_client::store::{ProviderAccount, ProviderLogin, StoreError, UserAccount};
use pudu_config::OidcProvider;
use pudu_kit::clock;
use pudu_people::accounts::{self, AccountChange};
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
    /// Returns DeerFlow's word for it.
    fn code(self) -> &'static str {
        match self {
            Self::Failed => "sso_failed",
            Self::NotAllowed => "sso_not_allowed",
            Self::AccountExists => "sso_account_exists",
        }
    }
}

/// The providers by which people sign in.
#[derive(Serialize, JsonSchema)]
pub(super) struct ListedProviders {
    providers: Vec<ListedProvider>,
}

/// A provider by which people sign in.
#[derive(Serialize, JsonSchema)]
struct ListedProvider {
    id: String,
    display_name: String,
    /// Always `oidc`.
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Lists the providers by which people sign in.
pub(super) async fn list(gateway: GatewayState) -> Json<ListedProviders> {
    let listed = |(id, provider): (&String, &IdentityProvider)| ListedProvider {
        id: id.clone(),
        display_name: provider.config.display_name.clone(),
        kind: "oidc",
    };
    Json(ListedProviders { providers: gateway.0.sign_in.providers.all().map(listed).collect() })
}

/// Wishes for a login.
#[derive(Deserialize, JsonSchema)]
pub(super) struct LoginWish {
    next: Option<String>,
    #[serde(default = "login::yes")]
    remember_me: bool,
}

/// Sends a browser to a provider.
pub(super) async fn begin(
    gateway: GatewayState,
    Path(name): Path<String>,
    Query(wish): Query<LoginWish>,
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
    let login = LoginState::begin(&name, checks, uri, wish.next.as_deref(), wish.remember_me, seconds())?;
    let cookie = login.cookie(&sign_in.key, origin::is_https(&headers))?;
    let mut answer = found(provider.login_address(&addresses, &login).as_str());
    cookies::put([cookie], answer.headers_mut());
    Ok(answer)
}

/// Returns the address of pudu as the browser knows it. The provider redirects only to registered addresses.
fn site(gateway: &GatewayState, headers: &HeaderMap) -> String {
    if let Some(url) = &gateway.0.sign_in.config.public_url {
        return url.as_str().trim_end_matches('/').to_owned();
    }
    let scheme = if origin::is_https(headers) { "https" } else { "http" };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    format!("{scheme}://{}", origin::forwarded_host(headers).or(host).unwrap_or_default())
}

/// Answer of a provider, as a browser brings it.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ProviderAnswer {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

/// Signs in a person who comes back from a provider.
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
    let place = match signed_in(&gateway, &name, provider, login.as_ref(), &answer).await {
        Ok(account) => {
            sign_in.limits.succeeded(&keys);
            visitor.prove();
            welcome(&gateway, &headers, login.as_ref(), &account)
        }
        Err(SignInEnd::Back(response)) => Ok((HeaderMap::new(), response)),
        Err(SignInEnd::Error(error)) => Err(error),
    };
    let mut response = place.into_response();
    cookies::put(login_state::end(&name, origin::is_https(&headers)), response.headers_mut());
    Ok(response)
}

/// End of a sign-in without a session.
enum SignInEnd {
    /// The browser is sent back to the sign-in page.
    Back(Response),
    Error(ApiError),
}

impl<E: Into<ApiError>> From<E> for SignInEnd {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// Begins a session, and sends the browser where the person wanted to go.
fn welcome(
    gateway: &GatewayState,
    headers: &HeaderMap,
    login: Option<&LoginState>,
    account: &UserAccount,
) -> Result<(HeaderMap, Response), ApiError> {
    let sign_in = &gateway.0.sign_in;
    let next: String =
        form_urlencoded::byte_serialize(login.map_or("/", |login| &login.next).as_bytes()).collect();
    let place = found(&format!("{}/auth/callback?next={next}", sign_in.providers.frontend()));
    with_session(sign_in, headers, account, login.map(|login| login.remember), place)
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
    let login = login.ok_or_else(|| unfit("no login of this browser is under way"))?;
    let state = answer.state.as_deref().unwrap_or_default();
    if !bool::from(state.as_bytes().ct_eq(login.state.as_bytes())) {
        return Err(unfit("it is the answer to another login"));
    }
    if let Some(error) = &answer.error {
        return Err(unfit(&format!("the provider says: {}", provider::word(error))));
    }
    let addresses = provider.addresses().await.map_err(|fault| no(&fault))?;
    if answer.iss.as_ref().is_some_and(|issuer| *issuer != addresses.issuer) {
        return Err(unfit("another provider answers"));
    }
    let code =
        answer.code.as_deref().filter(|code| !code.is_empty()).ok_or_else(|| unfit("there is no code"))?;
    let person = provider.person(&addresses, login, code).await.map_err(|fault| no(&fault))?;
    account_of(gateway, name, &provider.config, &addresses.issuer, &person).await
}

/// Finds the account of a person for whose identity a provider vouches; creates it if the configuration says so.
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
            Err(denied(SignInFailure::AccountExists, "somebody has the e-mail address already"))
        }
        ProviderAccount::Unknown => Err(denied(SignInFailure::NotAllowed, "the person has no account")),
        ProviderAccount::OtherIssuer => {
            Err(denied(SignInFailure::Failed, "the account is bound to another issuer of this provider"))
        }
    }
}

/// Returns the e-mail address of a person who may sign in, or the reason for the refusal. It is checked at each
/// sign-in: a person who loses the address loses access.
fn admitted(config: &OidcProvider, person: &PersonClaims) -> Result<String, &'static str> {
    let told = person.email.as_deref().ok_or("the provider tells no e-mail address")?;
    let email = accounts::email(told).ok_or("the provider tells something that is no e-mail address")?;
    if config.requires_verified_email && !person.is_verified() {
        return Err("the e-mail address is not verified");
    }
    let domain = email.rsplit('@').next().unwrap_or_default();
    match config.email_domains.is_empty() || config.email_domains.iter().any(|allowed| allowed == domain) {
        true => Ok(email),
        false => Err("the e-mail address is of a domain that is not let in"),
    }
}

fn failed(gateway: &GatewayState, name: &str, fault: &ProviderFault) -> Response {
    tracing::warn!(provider = name, "failed to sign somebody in by provider: {fault}");
    sent_back(gateway, SignInFailure::Failed)
}

/// Sends a browser back to the sign-in page, with the reason.
fn sent_back(gateway: &GatewayState, why: SignInFailure) -> Response {
    found(&format!("{}/login?error={}", gateway.0.sign_in.providers.frontend(), why.code()))
}

fn no_provider() -> ApiError {
    let why = "SSO authentication is not enabled, or there is no such provider";
    ApiError::coded(StatusCode::NOT_FOUND, "provider_not_found", why)
}

/// Sends a browser on. Neither it nor the next site keeps the address, which may have a code in it.
fn found(place: &str) -> Response {
    let fixed = [(header::CACHE_CONTROL, "no-store"), (header::REFERRER_POLICY, "no-referrer")];
    (StatusCode::FOUND, fixed, [(header::LOCATION, place)]).into_response()
}

fn seconds() -> i64 {
    clock::now() / 1000
}

/// Sends a browser from where DeerFlow's frontend takes it over to pudu's own page.
pub(super) async fn landed() -> Redirect {
    Redirect::to("/")
}
