//! Beginning and end of sessions: login, registration, the first administrator, logout.

use super::{
    answer::invalid,
    cookies,
    desk::{SignIn, with_session},
    limits::AttemptKey,
    origin,
    session::SESSION_SECS,
};
use crate::{
    ApiError, Created, GatewayState, Json,
    http::{Form, NoticeAnswer, guests::Visitor},
};
use axum::{
    Extension,
    extract::{ConnectInfo, Request},
    http::{HeaderMap, StatusCode},
    middleware::Next,
    response::Response,
};
use pudu_people::{
    accounts::{self, AccountChange},
    passwords::{self, PasswordCheck},
};
use pudu_store::{AddedAccount, Db, StoreError, UserAccount};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::time::Instant;

/// Duration of a failed login. It is the same for every cause.
const FAILURE_TIME: Duration = Duration::from_millis(500);

/// Refuses requests from pages of other sites.
pub(super) async fn same_origin(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    match gateway.0.is_another_site(request.headers(), peer.ip()) {
        true => Err(ApiError::forbidden("Cross-site auth request denied.")),
        false => Ok(next.run(request).await),
    }
}

/// A sign-in with a password.
#[derive(Deserialize, JsonSchema)]
pub(super) struct LoginForm {
    username: String,
    #[schemars(with = "String")]
    password: SecretString,
    #[serde(default = "yes")]
    remember_me: bool,
}

/// The session of a user who signed in.
#[derive(Serialize, JsonSchema)]
pub(super) struct NewSession {
    /// Lifetime of the session, in seconds.
    expires_in: i64,
    needs_setup: bool,
}

/// Signs a user in.
pub(super) async fn login(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Form(form): Form<LoginForm>,
) -> Result<(HeaderMap, Json<NewSession>), ApiError> {
    let (started, sign_in) = (Instant::now(), &gateway.0.sign_in);
    let name = AttemptKey::named("login", &form.username);
    let from = AttemptKey::From("login", client(sign_in, &headers, peer.ip()));
    let keys = [from, name.clone()];
    sign_in.attempt(&keys, "login")?;
    let known = known(&gateway, &form).await.inspect_err(|_| sign_in.limits.succeeded(&keys))?;
    let Some(account) = known else {
        tracing::warn!(from = %keys[0], "refused login");
        tokio::time::sleep_until(started + FAILURE_TIME).await;
        let why = "Incorrect email or password";
        return Err(ApiError::coded(StatusCode::UNAUTHORIZED, "invalid_credentials", why));
    };
    sign_in.limits.succeeded(&keys);
    sign_in.limits.forget(&name);
    visitor.prove();
    let session = NewSession { expires_in: SESSION_SECS, needs_setup: account.needs_setup };
    with_session(sign_in, &headers, &account, Some(form.remember_me), Json(session))
}

/// Returns the account if the password is right. Takes the same time if there is no account.
async fn known(gateway: &GatewayState, form: &LoginForm) -> Result<Option<UserAccount>, ApiError> {
    let (db, passwords) = (gateway.db(), &gateway.0.sign_in.passwords);
    let account = db.account_with(form.username.trim()).await?;
    let hash = account.as_ref().and_then(|account| account.password_hash.clone());
    let check = passwords.check(&form.password, hash.as_deref()).await?;
    let Some(account) = account.filter(|_| check != PasswordCheck::Wrong) else { return Ok(None) };
    if let (PasswordCheck::Outdated, Some(old)) = (check, &hash) {
        let new = passwords.hash(&form.password).await?;
        if let Err(error) = db.rehash_password(&account.user, old, &new).await {
            tracing::warn!(%error, "failed to upgrade password hash");
        }
    }
    Ok(Some(account))
}

/// A new account.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NewAccount {
    email: String,
    #[schemars(with = "String")]
    password: SecretString,
    #[serde(default = "yes")]
    remember_me: bool,
}

/// The first administrator, and whether they take over the data stored without an account.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FirstAdministrator {
    email: String,
    #[schemars(with = "String")]
    password: SecretString,
    #[serde(default = "yes")]
    remember_me: bool,
    #[serde(default = "yes")]
    adopt: bool,
}

impl From<FirstAdministrator> for NewAccount {
    fn from(FirstAdministrator { email, password, remember_me, .. }: FirstAdministrator) -> Self {
        Self { email, password, remember_me }
    }
}

pub(super) fn yes() -> bool {
    true
}

/// Registers an account, if registration is enabled.
pub(super) async fn register(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Result<Json<NewAccount>, ApiError>,
) -> Result<(HeaderMap, Created<Value>), ApiError> {
    if !gateway.config().registration {
        let detail = "Self-registration is disabled on this deployment";
        return Err(ApiError::coded(StatusCode::FORBIDDEN, "registration_disabled", detail));
    }
    let sign_in = &gateway.0.sign_in;
    let Json(new) = body?;
    let keys = [AttemptKey::From("register", client(sign_in, &headers, peer.ip()))];
    begin(sign_in, &keys, "registration", &new)?;
    let account = accounts::fresh(&sign_in.passwords, &new.email, &new.password, accounts::USER).await?;
    let db = gateway.db();
    audited_add(&db, &account, db.add_account(account.clone())).await?;
    made(sign_in, &headers, &account, new.remember_me)
}

/// Creates the first administrator. Requires the operator's token if another caller could be first.
pub(super) async fn initialize(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Result<Json<FirstAdministrator>, ApiError>,
) -> Result<(HeaderMap, Created<Value>), ApiError> {
    let (sign_in, guard) = (&gateway.0.sign_in, &gateway.0.guard);
    let db = gateway.db();
    if db.has_administrator().await? {
        return Err(already_initialized());
    }
    let is_open = !guard.guards_all()
        && !db.has_accounts().await?
        && !sign_in.providers.is_configured()
        && origin::is_local_request(peer.ip(), &headers);
    if !is_open {
        guard.require_token(&headers, peer.ip(), &visitor).await?;
    }
    let Json(first) = body?;
    let keys = [AttemptKey::From("initialize", client(sign_in, &headers, peer.ip()))];
    let (adopts, new) = (first.adopt, NewAccount::from(first));
    begin(sign_in, &keys, "setup", &new)?;
    let account = accounts::fresh(&sign_in.passwords, &new.email, &new.password, accounts::ADMIN).await?;
    let shared = &gateway.0.shared;
    let adoption = adopts.then(|| accounts::adoption(account.user.clone(), shared.rules().unpaired));
    let added = audited_add(&db, &account, db.add_first_administrator(account.clone(), adoption));
    let added = match adopts {
        true => {
            let user = account.user.as_str();
            // Two audit entries would take much space on the stack.
            Box::pin(accounts::audited(&db, user, AccountChange::Adopt, user, added)).await
        }
        false => added.await,
    };
    added?;
    shared.adopt().await;
    tracing::info!("created the first administrator: from now on, users of the gateway sign in");
    made(sign_in, &headers, &account, new.remember_me)
}

/// Reason why no account was added.
enum NotAdded {
    /// Another account has the e-mail address.
    Taken,
    /// An administrator already exists.
    AlreadyInitialized,
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for NotAdded {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NotAdded> for ApiError {
    fn from(error: NotAdded) -> Self {
        match error {
            NotAdded::Taken => {
                Self::coded(StatusCode::BAD_REQUEST, "email_already_exists", "Email already registered")
            }
            NotAdded::AlreadyInitialized => already_initialized(),
            NotAdded::Store(error) => error.into(),
        }
    }
}

/// Adds an account that a user creates for themselves, with an audit entry.
async fn audited_add(
    db: &Db,
    account: &UserAccount,
    add: impl Future<Output = Result<AddedAccount, StoreError>>,
) -> Result<(), NotAdded> {
    let user = account.user.as_str();
    let added = async {
        match add.await? {
            AddedAccount::Added => Ok(()),
            AddedAccount::Taken => Err(NotAdded::Taken),
            AddedAccount::Late => Err(NotAdded::AlreadyInitialized),
        }
    };
    accounts::audited(db, user, AccountChange::Add, user, added).await
}

/// Signs a user out of this browser.
pub(super) async fn logout() -> (HeaderMap, Json<NoticeAnswer>) {
    let mut headers = HeaderMap::new();
    cookies::put(cookies::end(), &mut headers);
    (headers, Json(NoticeAnswer { message: "Successfully logged out" }))
}

/// Returns the client's address. Attempts are counted per address.
pub(super) fn client(sign_in: &SignIn, headers: &HeaderMap, connected: IpAddr) -> IpAddr {
    origin::client(&sign_in.config, connected, headers)
}

/// Checks the values of a new account, and counts the attempt.
fn begin(sign_in: &SignIn, keys: &[AttemptKey], what: &str, new: &NewAccount) -> Result<(), ApiError> {
    // A typo does not count as an attempt.
    if accounts::email(&new.email).is_none() {
        return Err(invalid("email", "value is not a valid email address"));
    }
    if let Some(why) = passwords::objection(&new.password) {
        return Err(invalid("password", why));
    }
    sign_in.attempt(keys, what)
}

fn made(
    sign_in: &SignIn,
    headers: &HeaderMap,
    account: &UserAccount,
    remember: bool,
) -> Result<(HeaderMap, Created<Value>), ApiError> {
    with_session(sign_in, headers, account, Some(remember), Created(accounts::to_json(account)))
}

fn already_initialized() -> ApiError {
    ApiError::coded(StatusCode::CONFLICT, "system_already_initialized", "System already initialized")
}
