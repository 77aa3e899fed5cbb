//! Refusals of requests, and answers of those that may be refused.

use super::errors::refuse;
use crate::json::{BodyRejection, Json};
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_client::{SubmitError, net::scrub};
use serde::Serialize;

pub(super) use pudu_client::wire::thread::API_ACCOUNT as ACCOUNT;
/// Said of a thread on which something works.
pub(super) const IN_FLIGHT: &str = "the thread has work in flight; cancel its run, or say /stop in its chat";

/// Answer to a request that is refused.
pub(super) type Refusal = Box<Response>;

/// Answers that the store failed.
pub(super) fn unavailable(error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%error, "failed to read or write store for a client");
    Box::new(refuse(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer just now; try again"))
}

pub(super) fn refused<T>(status: StatusCode, why: &str) -> Result<T, Refusal> {
    Err(Box::new(refuse(status, why)))
}

/// Refuses a value that cannot be obeyed.
pub(super) fn wrong<T>(why: &str) -> Result<T, Refusal> {
    refused(StatusCode::UNPROCESSABLE_ENTITY, why)
}

pub(super) fn missing<T>() -> Result<T, Refusal> {
    refused(StatusCode::NOT_FOUND, "there is no such thread")
}

/// Answers a request whose work may be refused.
pub(super) fn answer<T: IntoResponse>(done: Result<T, Refusal>) -> Response {
    done.map_or_else(|refusal| *refusal, IntoResponse::into_response)
}

/// Answers with content of threads, without secrets that a tool may have found.
pub(super) fn scrubbed(answer: &impl Serialize) -> Response {
    let text = serde_json::to_string(answer).unwrap_or_default();
    let body = scrub::hide_in_talk(&text).into_owned();
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Reads a body.
pub(super) fn body<T>(body: Result<Json<T>, BodyRejection>) -> Result<T, Refusal> {
    body.map(|Json(body)| body).map_err(|error| Box::new(refuse(error.status(), &error.body_text())))
}

/// Answers how a change of a thread went.
pub(super) fn changed<T>(done: Result<T, SubmitError>) -> Result<T, Refusal> {
    match done {
        Ok(done) => Ok(done),
        Err(SubmitError::Busy(_)) => refused(StatusCode::CONFLICT, IN_FLIGHT),
        Err(SubmitError::Full) => refused(StatusCode::SERVICE_UNAVAILABLE, "too many runs wait; try again"),
        Err(SubmitError::Store(error)) => Err(unavailable(&error)),
    }
}
