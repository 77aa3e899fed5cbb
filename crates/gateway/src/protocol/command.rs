//! A command of LangGraph's protocol, and why it may be refused.

use crate::{ApiError, Caller, GatewayState, auth::CallerProof, threads::state::unknown_checkpoint};
use axum::http::StatusCode;
use pudu_base::ThreadId;
use serde_json::{Map, Value};

/// A command on a thread.
pub(super) struct ThreadCommand<'c> {
    pub(super) gateway: &'c GatewayState,
    pub(super) caller: &'c Caller,
    pub(super) proof: &'c CallerProof,
    pub(super) thread: &'c ThreadId,
    pub(super) params: Map<String, Value>,
}

/// Why a command was not carried out.
pub(super) enum CommandRefusal {
    /// A code of the protocol, and a sentence.
    Code(&'static str, String),
    /// An error of the request, such as a store that does not answer: the client tries again.
    Error(ApiError),
}

pub(super) type Carried<T> = Result<T, CommandRefusal>;

/// Creates a refusal with a code of the protocol.
pub(super) fn refuse<T>(code: &'static str, message: impl Into<String>) -> Carried<T> {
    Err(CommandRefusal::Code(code, message.into()))
}

impl From<ApiError> for CommandRefusal {
    fn from(error: ApiError) -> Self {
        let code = match error.status() {
            _ if error == unknown_checkpoint() => "no_such_checkpoint",
            StatusCode::FORBIDDEN => "permission_denied",
            status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                "invalid_argument"
            }
            _ => return Self::Error(error),
        };
        Self::Code(code, error.body_text())
    }
}
