//! State of sign-in: its rules, the key of sessions, and the recent attempts.

use super::{
    super::errors::refuse,
    answer::broken,
    cookies,
    limits::{AttemptKey, AttemptLimits},
    oidc::providers::Providers,
    session::SessionKey,
};
use anyhow::Result;
use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_client::base::UserId;
use pudu_config::AuthConfig;
use pudu_people::passwords::Passwords;
use std::{path::Path, time::Duration};
use tokio::time::Instant;

/// Everything that sign-in keeps.
pub struct SignIn {
    pub(crate) config: AuthConfig,
    pub(super) key: SessionKey,
    pub(super) passwords: Passwords,
    pub(super) limits: AttemptLimits,
    pub(super) providers: Providers,
}

impl SignIn {
    /// Reads the key of a home, or makes it.
    pub fn open(config: &AuthConfig, home: &Path) -> Result<Self> {
        let key = SessionKey::open(config.jwt_secret.as_ref(), home)?;
        if config.disabled {
            tracing::warn!(
                "SIGN-IN IS OFF: DEER_FLOW_AUTH_DISABLED makes everybody who reaches the gateway an administrator"
            );
        }
        let (passwords, limits) = (Passwords::default(), AttemptLimits::default());
        let providers = Providers::new(config.oidc.as_ref());
        Ok(Self { config: config.clone(), key, passwords, limits, providers })
    }

    /// Counts a code by which a chat is linked; returns whether a user may have it. Each takes the place of the one before.
    pub(crate) fn may_offer_link(&self, user: &UserId) -> bool {
        self.limits.begin(&[AttemptKey::named("link", user.as_str())], Instant::now()).is_ok()
    }

    /// Counts an attempt; returns the answer if there were too many.
    pub(super) fn attempt(&self, keys: &[AttemptKey], what: &str) -> Option<Response> {
        self.limits.begin(keys, Instant::now()).err().map(|left| too_many(what, left))
    }
}

fn too_many(what: &str, left: Duration) -> Response {
    let told = format!("Too many {what} attempts. Try again later.");
    let seconds = left.as_secs().max(1).to_string();
    ([(header::RETRY_AFTER, seconds)], refuse(StatusCode::TOO_MANY_REQUESTS, &told)).into_response()
}

/// Begins a session with an answer.
pub(super) fn with_session(
    sign_in: &SignIn,
    headers: &HeaderMap,
    account: &pudu_client::store::UserAccount,
    remember: Option<bool>,
    answer: impl IntoResponse,
) -> Response {
    let policy = cookies::CookiePolicy::of(headers, remember, sign_in.config.insecure_persistence);
    let now = pudu_kit::clock::now() / 1000;
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
