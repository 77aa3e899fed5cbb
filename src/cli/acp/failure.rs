//! Errors for the editor.

use crate::cli::chat::api::ApiFailure;
use pudu_acp::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};

/// Code of an error: there is no such session.
pub(super) const NOT_FOUND: i64 = -32002;

/// Converts a failure of the daemon.
pub(super) fn failed(failure: ApiFailure) -> RpcError {
    match failure {
        ApiFailure::Missing(why) => RpcError::new(NOT_FOUND, why),
        ApiFailure::Refused(why) => RpcError::new(INVALID_PARAMS, why),
        ApiFailure::Later { reason, .. } => RpcError::new(INTERNAL_ERROR, reason),
    }
}
