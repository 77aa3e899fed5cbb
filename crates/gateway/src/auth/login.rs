//! Sessions begin and end: login, registration, the first administrator, logout.

use super::{
    super::{GatewayState, errors::refuse, guests::Visitor},
    answer::{broken, coded, invalid, told, unstored},
    cookies,
    desk::{SignIn, with_session},
    limits::AttemptKey,
    origin,
};
use crate::json::{BodyRejection, Form, Json};
use axum::{
    Extension,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use pudu_client::store::{AddedAccount, Db, StoreError, UserAccount};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_people::{
    accounts::{self, AccountChange},
    passwords::{self, PasswordCheck},
};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::time::Instant;

/// Duration of a failed login, regardless of the cause.
const FAILURE_TIME: Duration = Duration::from_millis(500);

/// Refuses requests from pages of other sites.
pub(super) async fn same_origin(
    State(gateway): State<GatewayState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    match gateway.0.is_another_site(request.headers(), peer.ip()) {
        true => refuse(StatusCode::FORBIDDEN, "Cross-site auth request denied."),
        false => next.run(request).await,
    }
}

/// A person's login.
#[derive(Deserialize, JsonSchema)]
pub(super) struct LoginForm {
    username: String,
    #[schemars(with = "String")]
    password: SecretString,
    #[serde(default = "yes")]
    remember_me: bool,
}

/// Signs a user in.
pub(super) async fn login(
    State(gateway): State<GatewayState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    form: Result<Form<LoginForm>, BodyRejection>,
) -> Response {
    let form = match form {
        Ok(Form(form)) => form,
        Err(error) => return refuse(error.status(), &error.body_text()),
    };
    let (begun, sign_in) = (Instant::now(), &gateway.0.sign_in);
    let name = AttemptKey::named("login", &form.username);
    let from = AttemptKey::From("login", client(sign_in, &headers, peer.ip()));
    let keys = [from, name.clone()];
    if let Some(refusal) = sign_in.attempt(&keys, "login") {
        return refusal;
    }
    match known(&gateway, &form).await {
        Ok(Some(account)) => {
            sign_in.limits.succeeded(&keys);
            sign_in.limits.forget(&name);
            visitor.prove();
            let told =
                json!({ "expires_in": super::session::SESSION_SECS, "needs_setup": account.needs_setup });
            with_session(sign_in, &headers, &account, Some(form.remember_me), Json(told))
        }
        Ok(None) => {
            tracing::warn!(from = %keys[0], "refused login");
            tokio::time::sleep_until(begun + FAILURE_TIME).await;
            coded(StatusCode::UNAUTHORIZED, "invalid_credentials", "Incorrect email or password")
        }
        Err(refusal) => {
            sign_in.limits.succeeded(&keys);
            refusal
        }
    }
}

/// Finds the account if the password is right. Whether there is one makes no difference in time.
async fn known(gateway: &GatewayState, form: &LoginForm) -> Result<Option<UserAccount>, Response> {
    let (db, passwords) = (gateway.0.shared.db.within(STORE_TIMEOUT), &gateway.0.sign_in.passwords);
    let account = db.account_with(form.username.trim()).await.map_err(|error| unstored(&error))?;
    let hash = account.as_ref().and_then(|account| account.password_hash.clone());
    let check = passwords.check(&form.password, hash.as_deref()).await.map_err(|error| broken(&error))?;
    let Some(account) = account.filter(|_| check != PasswordCheck::Wrong) else { return Ok(None) };
    if let (PasswordCheck::Outdated, Some(old)) = (check, &hash) {
        let new = passwords.hash(&form.password).await.map_err(|error| broken(&error))?;
        if let Err(error) = db.rehash_password(&account.user, old, &new).await {
            tracing::warn!(%error, "failed to store a newer hash of a password");
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

/// The first administrator, and whether they take over the data held here without an account.
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

/// Makes a visitor an account, if visitors may.
pub(super) async fn register(
    State(gateway): State<GatewayState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Result<Json<NewAccount>, BodyRejection>,
) -> Response {
    if !gateway.0.watcher.current().registration {
        let told = "Self-registration is disabled on this deployment";
        return coded(StatusCode::FORBIDDEN, "registration_disabled", told);
    }
    let sign_in = &gateway.0.sign_in;
    let keys = [AttemptKey::From("register", client(sign_in, &headers, peer.ip()))];
    let new = match begun(sign_in, &keys, "registration", body) {
        Ok(new) => new,
        Err(refusal) => return *refusal,
    };
    let account = match fresh(sign_in, &new, accounts::USER).await {
        Ok(account) => account,
        Err(refusal) => return refusal,
    };
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    match audited_add(&db, &account, db.add_account(account.clone())).await {
        Ok(()) => made(sign_in, &headers, &account, new.remember_me),
        Err(error) => error.told(),
    }
}

/// Creates the first administrator. Requires the operator's token wherever another caller could get there first.
pub(super) async fn initialize(
    State(gateway): State<GatewayState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Result<Json<FirstAdministrator>, BodyRejection>,
) -> Response {
    let (sign_in, guard) = (&gateway.0.sign_in, &gateway.0.guard);
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    match db.has_administrator().await {
        Ok(false) => {}
        Ok(true) => return late(),
        Err(error) => return unstored(&error),
    }
    let has_accounts = match db.has_accounts().await {
        Ok(there) => there,
        Err(error) => return unstored(&error),
    };
    let is_open = !guard.guards_all()
        && !has_accounts
        && !sign_in.providers.are_there()
        && origin::is_of_this_machine(peer.ip(), &headers);
    if !is_open && let Err(refusal) = guard.require_token(&headers, peer.ip(), &visitor).await {
        return refusal;
    }
    let keys = [AttemptKey::From("initialize", client(sign_in, &headers, peer.ip()))];
    let adopts = body.as_ref().is_ok_and(|Json(first)| first.adopt);
    let body = body.map(|Json(first)| Json(NewAccount::from(first)));
    let new = match begun(sign_in, &keys, "setup", body) {
        Ok(new) => new,
        Err(refusal) => return *refusal,
    };
    let account = match fresh(sign_in, &new, accounts::ADMIN).await {
        Ok(account) => account,
        Err(refusal) => return refusal,
    };
    let shared = &gateway.0.shared;
    let adoption = adopts.then(|| accounts::adoption(account.user.clone(), shared.rules().unpaired));
    let added = audited_add(&db, &account, db.add_first_administrator(account.clone(), adoption));
    let added = match adopts {
        true => {
            let user = account.user.as_str();
            // Two entries of the audit are much to keep on the stack.
            Box::pin(accounts::audited(&db, user, AccountChange::Adopt, user, added)).await
        }
        false => added.await,
    };
    match added {
        Ok(()) => {
            shared.adopt().await;
            tracing::info!("made the first administrator: whoever uses the gateway signs in from now on");
            made(sign_in, &headers, &account, new.remember_me)
        }
        Err(error) => error.told(),
    }
}

/// Reason why no account was added.
enum NotAdded {
    /// Another account has the address.
    Taken,
    /// There is an administrator already.
    Late,
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for NotAdded {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl NotAdded {
    fn told(self) -> Response {
        match self {
            Self::Taken => coded(StatusCode::BAD_REQUEST, "email_already_exists", "Email already registered"),
            Self::Late => late(),
            Self::Store(error) => unstored(&error),
        }
    }
}

/// Adds an account that a user creates for themselves, with a line in the audit.
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
            AddedAccount::Late => Err(NotAdded::Late),
        }
    };
    accounts::audited(db, user, AccountChange::Add, user, added).await
}

/// Signs a user out of this browser.
pub(super) async fn logout() -> Response {
    let mut answer = Json(json!({ "message": "Successfully logged out" })).into_response();
    cookies::put(cookies::end(), &mut answer);
    answer
}

/// Returns the client's address, for counting.
pub(super) fn client(sign_in: &SignIn, headers: &HeaderMap, connected: IpAddr) -> IpAddr {
    origin::client(&sign_in.config, connected, headers)
}

/// Counts an attempt and reads its body.
fn begun(
    sign_in: &SignIn,
    keys: &[AttemptKey],
    what: &str,
    body: Result<Json<NewAccount>, BodyRejection>,
) -> Result<NewAccount, Box<Response>> {
    let Json(new) = body.map_err(|error| Box::new(refuse(error.status(), &error.body_text())))?;
    // A slip of the finger is no attempt.
    if accounts::email(&new.email).is_none() {
        return Err(Box::new(invalid("email", "value is not a valid email address")));
    }
    if let Some(why) = passwords::objection(&new.password) {
        return Err(Box::new(invalid("password", why)));
    }
    match sign_in.attempt(keys, what) {
        Some(refusal) => Err(Box::new(refusal)),
        None => Ok(new),
    }
}

async fn fresh(sign_in: &SignIn, new: &NewAccount, role: &str) -> Result<UserAccount, Response> {
    let account = accounts::fresh(&sign_in.passwords, &new.email, &new.password, role).await;
    account.map_err(|error| told(&error))
}

fn made(sign_in: &SignIn, headers: &HeaderMap, account: &UserAccount, remember: bool) -> Response {
    let told = (StatusCode::CREATED, Json(accounts::to_json(account)));
    with_session(sign_in, headers, account, Some(remember), told)
}

fn late() -> Response {
    coded(StatusCode::CONFLICT, "system_already_initialized", "System already initialized")
}
