//! Errors of sign-in, in the formats of DeerFlow's frontend and of administrators' requests.

use crate::ApiError;
use axum::http::StatusCode;
use pudu_people::accounts::AccountError;
use serde_json::json;

/// Returns the error about a body field in DeerFlow's format. Omits the value, which may be a password.
pub(super) fn invalid(field: &str, message: &str) -> ApiError {
    ApiError::invalid(
        json!([{ "type": "value_error", "loc": ["body", field], "msg": message, "input": null }]),
    )
}

impl From<AccountError> for ApiError {
    fn from(error: AccountError) -> Self {
        let status = match error {
            AccountError::NoEmail(_) | AccountError::Password(_) | AccountError::Token(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            AccountError::Taken(_) | AccountError::LastAdministrator(_) => StatusCode::CONFLICT,
            AccountError::Unknown(_) | AccountError::NoToken => StatusCode::NOT_FOUND,
            AccountError::Store(error) => return error.into(),
            AccountError::Failed(error) => return error.into(),
        };
        Self::new(status, error.to_string())
    }
}
