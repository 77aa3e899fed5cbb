//! The caller of a request: their user and their role.

use super::{GatewayState, errors::ApiError};
use axum::{extract::FromRequestParts, http::request::Parts};
use pudu_client::base::UserId;
use pudu_people::accounts;

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// The user, whose threads, memory and limits the caller has.
    pub(super) user: UserId,
    /// Rights beyond the use of their own data.
    pub(super) role: CallerRole,
}

/// Rights of a caller beyond the use of their own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerRole {
    /// Nothing.
    User,
    /// All changes of the installation.
    Admin,
}

impl Caller {
    /// Returns the name by which the audit knows them.
    pub(super) fn audit_name(&self) -> &str {
        match self.is_admin() && self.user == UserId::local() {
            true => accounts::OPERATOR,
            false => self.user.as_str(),
        }
    }

    /// Returns whether they may change the installation.
    pub(super) fn is_admin(&self) -> bool {
        self.role == CallerRole::Admin
    }
}

impl FromRequestParts<GatewayState> for Caller {
    type Rejection = ApiError;

    /// Takes the caller that the guard has noted. A route that no guard watches has no caller.
    async fn from_request_parts(parts: &mut Parts, _: &GatewayState) -> Result<Self, ApiError> {
        let caller = parts.extensions.get().cloned();
        caller.ok_or_else(|| ApiError::unauthorized("nobody is known to ask"))
    }
}
