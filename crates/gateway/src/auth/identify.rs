//! Identifies the caller of a request from its credentials.
//!
//! A wrong token is an error, and no other proof is tried. After an invalid session, only disabled sign-in, the
//! operator's token and access without accounts are tried. The order is DeerFlow's: the token of the installation's
//! programs, a token in the header, a session, the page's cookie, no proof.

use super::{
    caller::{Caller, CallerRole},
    cookies::{self, cookie},
    guard::{self, ShownProof, bearer},
    scopes::{self, ScopeNeed},
    session::SessionFault,
};
use crate::{ApiError, GatewayState, http::guests::Visitor};
use axum::http::{HeaderMap, Method, StatusCode};
use pudu_base::{UserId, digest};
use pudu_kit::clock;
use pudu_people::accounts;
use pudu_store::UserAccount;
use std::net::IpAddr;

const INTERNAL_TOKEN: &str = "x-deerflow-internal-token";
const INTERNAL_OWNER: &str = "x-deerflow-owner-user-id";
/// Error for an invalid token of a program. It does not reveal whether the token ever existed.
const NO_TOKEN: &str = "This token is unknown, revoked or expired. Create a new one: sign in and send POST /api/v1/auth/tokens, or run `pudu token add NAME --user EMAIL --scope SCOPES`";

/// Proof of a caller's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallerProof {
    /// The operator's token.
    Operator,
    /// A session of this account.
    Session(Box<UserAccount>),
    /// A program's token with this name.
    ApiToken(String),
    /// The token of the installation's own programs.
    Internal,
    /// None: sign-in is off.
    Disabled,
    /// None: no account exists, and the caller is on this machine.
    Local,
}

/// The parts of a request that identify its caller.
#[derive(Clone, Copy)]
pub(crate) struct ShownRequest<'r> {
    pub(crate) method: &'r Method,
    pub(crate) path: &'r str,
    pub(crate) query: Option<&'r str>,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) from: IpAddr,
    pub(crate) visitor: &'r Visitor,
}

impl CallerProof {
    /// Returns whether a caller with this proof sees the data of all users: an administrator, or a caller on this
    /// machine while no account exists.
    pub(crate) fn sees_all(&self, caller: &Caller) -> bool {
        caller.is_admin() || *self == Self::Local
    }

    /// Returns the audit log's name for a caller who decides with this proof.
    pub(crate) fn decider(&self, caller: &Caller) -> String {
        match self {
            Self::ApiToken(name) => format!("{} (token {name})", caller.user),
            _ => caller.audit_name().to_owned(),
        }
    }
}

/// Identifies the caller of a request. The error is the response to a refused caller.
pub(crate) async fn identify(
    gateway: &GatewayState,
    request: ShownRequest<'_>,
) -> Result<(Caller, CallerProof), ApiError> {
    if request.headers.contains_key(INTERNAL_TOKEN) {
        return internal(gateway, request).await;
    }
    if let Some(bearer) = bearer(request.headers)
        && bearer.starts_with(accounts::TOKEN_PREFIX)
        && !gateway.0.guard.shows_token(request.headers)
    {
        return api_token(gateway, request, bearer).await;
    }
    let has_bearer = bearer(request.headers).is_some();
    let session =
        cookie(request.headers, cookies::SESSION).filter(|session| !session.is_empty() && !has_bearer);
    let fault = match session {
        Some(session) => match session_of(gateway, session).await? {
            Ok(account) => return checked_session(request, account),
            Err(fault) => Some(fault),
        },
        None => None,
    };
    if gateway.0.sign_in.config.disabled && !has_bearer {
        return Ok((operator(), CallerProof::Disabled));
    }
    without_account(gateway, request, fault).await
}

/// Admits the operator, and callers on this machine while no account exists.
async fn without_account(
    gateway: &GatewayState,
    request: ShownRequest<'_>,
    fault: Option<(&'static str, &'static str)>,
) -> Result<(Caller, CallerProof), ApiError> {
    let db = gateway.db();
    // With an identity provider, sign-in is required even before the first account exists.
    let guards_all = gateway.0.guard.guards_all() || gateway.0.sign_in.providers.is_configured();
    let signed_in = guards_all || db.has_accounts().await?;
    let proof = gateway.0.guard.examine(request.headers, request.from, request.visitor, signed_in).await;
    match (proof, fault) {
        (ShownProof::Token, _) => Ok((operator(), CallerProof::Operator)),
        (ShownProof::Nothing, _) if !signed_in => {
            Ok((Caller { user: UserId::local(), role: CallerRole::User }, CallerProof::Local))
        }
        (ShownProof::Nothing, Some((code, message))) => {
            Err(ApiError::coded(StatusCode::UNAUTHORIZED, code, message))
        }
        (ShownProof::Nothing, None)
            if gateway.0.sign_in.providers.is_configured() || db.has_accounts().await.unwrap_or(false) =>
        {
            Err(ApiError::coded(StatusCode::UNAUTHORIZED, "not_authenticated", "Authentication required"))
        }
        (proof, _) => Err(proof.refusal()),
    }
}

/// Returns the caller that the operator's token identifies.
pub(crate) fn operator() -> Caller {
    Caller { user: UserId::local(), role: CallerRole::Admin }
}

async fn internal(
    gateway: &GatewayState,
    request: ShownRequest<'_>,
) -> Result<(Caller, CallerProof), ApiError> {
    let guard = &gateway.0.guard;
    let sent = request.headers.get(INTERNAL_TOKEN).and_then(|token| token.to_str().ok()).unwrap_or_default();
    let right =
        gateway.0.sign_in.config.internal_token.as_ref().is_some_and(|token| guard::same(sent, token));
    if !right {
        let wrong = ApiError::unauthorized(
            "the token in X-DeerFlow-Internal-Token is wrong: send the value of DEER_FLOW_INTERNAL_AUTH_TOKEN of this gateway",
        );
        return Err(guard.refuse_wrong(request.headers, request.from, wrong).await);
    }
    request.visitor.prove();
    let owner = request.headers.get(INTERNAL_OWNER).map(|owner| owner.to_str().unwrap_or_default().trim());
    let user = match owner {
        None => UserId::local(),
        Some(raw) => UserId::from_raw(raw)
            .map_err(|_| ApiError::bad_request("X-DeerFlow-Owner-User-Id is not a valid user id"))?,
    };
    let db = gateway.db();
    let account = db.account_of(&user).await?;
    let role = account.map_or(CallerRole::User, |account| role_of(&account));
    Ok((Caller { user, role }, CallerProof::Internal))
}

async fn api_token(
    gateway: &GatewayState,
    request: ShownRequest<'_>,
    shown: &str,
) -> Result<(Caller, CallerProof), ApiError> {
    let db = gateway.db();
    let now = clock::now();
    let found = db.api_token(&digest(shown), now).await?;
    let known = match &found {
        // A token is invalid once its user has no account.
        Some(token) if token.user != UserId::local() => db.account_of(&token.user).await?.is_some(),
        found => found.is_some(),
    };
    let Some(token) = found.filter(|_| known) else {
        let wrong = ApiError::coded(StatusCode::UNAUTHORIZED, "token_invalid", NO_TOKEN);
        return Err(gateway.0.guard.refuse_wrong(request.headers, request.from, wrong).await);
    };
    request.visitor.prove();
    let has = |wanted: &str| token.scopes.split(' ').any(|scope| scope == wanted);
    match scopes::needed(request.method, request.path, request.query) {
        ScopeNeed::Scopes(wanted) => {
            if let Some(missing) = wanted.iter().find(|wanted| !has(wanted)) {
                return Err(ApiError::forbidden(format!("this token lacks the scope {missing}")));
            }
        }
        ScopeNeed::Person => {
            let why = "API tokens may not do this: sign in, or use the operator's token";
            return Err(ApiError::forbidden(why));
        }
    }
    if let Err(error) = db.note_api_token_use(&token, now).await {
        tracing::warn!(%error, "failed to record the use of a token");
    }
    Ok((Caller { user: token.user, role: CallerRole::User }, CallerProof::ApiToken(token.name)))
}

/// Returns the account of a session, or the error's code and message.
async fn session_of(
    gateway: &GatewayState,
    session: &str,
) -> Result<Result<UserAccount, (&'static str, &'static str)>, ApiError> {
    let invalid = ("token_invalid", "This session is no longer valid: sign in again");
    let claims = match gateway.0.sign_in.key.read(session, clock::now() / 1000) {
        Ok(claims) => claims,
        Err(SessionFault::Expired) => {
            return Ok(Err(("token_expired", "This session has expired: sign in again")));
        }
        Err(SessionFault::Invalid) => return Ok(Err(invalid)),
    };
    let user = UserId::from_raw(&claims.sub).ok().filter(|user| user.as_str() == claims.sub);
    let Some(user) = user else { return Ok(Err(invalid)) };
    let db = gateway.db();
    let account = db.account_of(&user).await?;
    Ok(match account {
        None => Err(("user_not_found", "The account of this session no longer exists: sign in again")),
        Some(account) if account.token_version != claims.ver => Err(invalid),
        Some(account) => Ok(account),
    })
}

fn checked_session(
    request: ShownRequest<'_>,
    account: UserAccount,
) -> Result<(Caller, CallerProof), ApiError> {
    request.visitor.prove();
    if let Some(fault) = cookies::csrf_fault(request.method, request.headers) {
        return Err(ApiError::forbidden(fault));
    }
    let caller = Caller { user: account.user.clone(), role: role_of(&account) };
    Ok((caller, CallerProof::Session(Box::new(account))))
}

fn role_of(account: &UserAccount) -> CallerRole {
    if account.role == accounts::ADMIN { CallerRole::Admin } else { CallerRole::User }
}
