//! Shared sign-in state: configuration, the session key, and recent attempts.

use super::{
    cookies,
    limits::{AttemptKey, AttemptLimits},
    oidc::providers::Providers,
    session::SessionKey,
};
use crate::ApiError;
use anyhow::Result;
use axum::http::HeaderMap;
use pudu_base::UserId;
use pudu_config::AuthConfig;
use pudu_kit::clock;
use pudu_people::passwords::Passwords;
use pudu_store::UserAccount;
use std::path::Path;
use tokio::time::Instant;

/// Shared state of sign-in.
pub struct SignIn {
    pub(crate) config: AuthConfig,
    pub(super) key: SessionKey,
    pub(super) passwords: Passwords,
    pub(super) limits: AttemptLimits,
    pub(super) providers: Providers,
}

impl SignIn {
    /// Loads the session key from the home folder, creating it if missing.
    pub fn open(config: &AuthConfig, home: &Path) -> Result<Self> {
        let key = SessionKey::open(config.jwt_secret.as_ref(), home)?;
        if config.disabled {
            tracing::warn!(
                "SIGN-IN IS OFF: DEER_FLOW_AUTH_DISABLED makes every caller of the gateway an administrator"
            );
        }
        let (passwords, limits) = (Passwords::default(), AttemptLimits::default());
        let providers = Providers::new(config.oidc.as_ref());
        Ok(Self { config: config.clone(), key, passwords, limits, providers })
    }

    /// Records a request for a chat-link code and returns whether one may be issued. A new code replaces the previous
    /// one.
    pub(crate) fn may_offer_link(&self, user: &UserId) -> bool {
        self.limits.begin(&[AttemptKey::named("link", user.as_str())], Instant::now()).is_ok()
    }

    /// Counts an attempt. Refuses it if there were too many.
    pub(super) fn attempt(&self, keys: &[AttemptKey], what: &str) -> Result<(), ApiError> {
        self.limits.begin(keys, Instant::now()).map_err(|left| {
            let detail = format!("Too many {what} attempts. Try again later.");
            ApiError::too_many(detail).retry_after(left.as_secs().max(1))
        })
    }
}

/// Adds the cookies of a new session to a response.
pub(super) fn with_session<T>(
    sign_in: &SignIn,
    headers: &HeaderMap,
    account: &UserAccount,
    remember: Option<bool>,
    answer: T,
) -> Result<(HeaderMap, T), ApiError> {
    let policy = cookies::CookiePolicy::from_headers(headers, remember, sign_in.config.insecure_persistence);
    let session = sign_in.key.issue(&account.user, account.token_version, clock::now() / 1000)?;
    let mut set = HeaderMap::new();
    cookies::put(cookies::begin(policy, &session)?, &mut set);
    Ok((set, answer))
}
