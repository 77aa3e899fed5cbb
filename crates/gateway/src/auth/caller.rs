//! The caller of a request: their user and their role.

use crate::{ApiError, GatewayState};
use axum::{extract::FromRequestParts, http::request::Parts};
use pudu_base::{ThreadId, UserId};
use pudu_dispatch::{commands::ThreadCaller, local};
use pudu_people::accounts;
use pudu_texts::Language;

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The user whose threads, memory and limits apply.
    pub(crate) user: UserId,
    /// Rights beyond the use of their own data.
    pub(crate) role: CallerRole,
}

/// Rights of a caller beyond the use of their own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerRole {
    /// No further rights.
    User,
    /// May change the whole installation.
    Admin,
}

impl Caller {
    /// Returns the caller's name in the audit log.
    pub(crate) fn audit_name(&self) -> &str {
        match self.is_admin() && self.user == UserId::local() {
            true => accounts::OPERATOR,
            false => self.user.as_str(),
        }
    }

    /// Returns whether the caller may change the installation.
    pub(crate) fn is_admin(&self) -> bool {
        self.role == CallerRole::Admin
    }

    /// Returns the caller of a slash command on a thread.
    pub(crate) fn on_thread(
        &self,
        gateway: &GatewayState,
        thread: ThreadId,
        language: Language,
    ) -> Result<ThreadCaller, ApiError> {
        let shared = &gateway.0.shared;
        let account = shared.accounts.get(local::ACCOUNT);
        let account =
            account.ok_or_else(|| ApiError::unavailable("the daemon is shutting down; try again"))?;
        let (user, is_admin) = (self.user.clone(), self.is_admin());
        Ok(ThreadCaller { thread, user, is_admin, language, account })
    }
}

impl FromRequestParts<GatewayState> for Caller {
    type Rejection = ApiError;

    /// Reads the caller that the guard recorded. Routes without the guard have no caller.
    async fn from_request_parts(parts: &mut Parts, _: &GatewayState) -> Result<Self, ApiError> {
        let caller = parts.extensions.get().cloned();
        caller.ok_or_else(|| ApiError::unauthorized("the caller could not be identified"))
    }
}
