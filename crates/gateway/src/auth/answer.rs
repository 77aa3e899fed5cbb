//! Errors of sign-in, in the forms that DeerFlow's frontend and an administrator read.

use super::super::errors::refuse;
use crate::json::Json;
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_client::store::StoreError;
use pudu_people::accounts::AccountError;
use serde_json::json;

/// An error with a code, in the form that DeerFlow's frontend reads.
pub(super) fn coded(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "detail": { "code": code, "message": message } }))).into_response()
}

/// An error about a field of the body, in the form of DeerFlow's framework. It does not repeat the field, which may be a password.
pub(super) fn invalid(field: &str, message: &str) -> Response {
    let detail = json!([{ "type": "value_error", "loc": ["body", field], "msg": message, "input": null }]);
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": detail }))).into_response()
}

pub(super) fn unstored(error: &StoreError) -> Response {
    tracing::error!(%error, "failed to look up an account");
    refuse(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer: try again in a moment")
}

pub(super) fn broken(error: &anyhow::Error) -> Response {
    tracing::error!("failed to sign in: {error:#}");
    refuse(StatusCode::INTERNAL_SERVER_ERROR, "that could not be done just now; the log says why")
}

/// Returns an error in the form shown to administrators.
pub(super) fn told(error: &AccountError) -> Response {
    let status = match error {
        AccountError::NoEmail(_) | AccountError::Password(_) | AccountError::Token(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        AccountError::Taken(_) | AccountError::LastAdministrator(_) => StatusCode::CONFLICT,
        AccountError::Unknown(_) | AccountError::NoToken => StatusCode::NOT_FOUND,
        AccountError::Store(error) => return unstored(error),
        AccountError::Failed(error) => return broken(error),
    };
    refuse(status, &error.to_string())
}
