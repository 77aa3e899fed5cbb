//! Reasons why a server is unavailable.

use crate::{http::ExchangeError, server::ServerLabel};
use pudu_net::reqwest::StatusCode;
use rmcp::{
    service::{ClientInitializeError, ServiceError},
    transport::streamable_http_client::StreamableHttpError,
};
use std::{error::Error, io, time::Duration};

/// Reason why a server is unavailable. The texts do not contain secrets from the server's entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerFailure {
    /// The server's entry has to be fixed.
    #[error("{0}")]
    Config(String),
    /// The server could not be started or reached, or does not speak the protocol. A later attempt may succeed.
    #[error("{0}")]
    Down(String),
    /// The server did not become ready in time.
    #[error("did not get ready within {0:?} (session_init_timeout)")]
    Slow(Duration),
}

impl ServerFailure {
    /// Returns a suggestion for an operator.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Config(_) => "correct its entry in the extensions file (docs/extensions.md)",
            Self::Down(_) => {
                "check that its `command` works in a terminal, or that its `url` and `headers` are right; pudu tries \
                 again until it answers"
            }
            Self::Slow(_) => {
                "raise its `session_init_timeout`, or start its `command` in a terminal to see why it is slow; pudu \
                 tries again until it answers"
            }
        }
    }
}

/// A server whose tools are unavailable, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server {server}: {failure}")]
pub struct Skipped {
    /// The server's name in the configuration.
    pub server: String,
    /// Reason why its tools are unavailable.
    pub failure: ServerFailure,
}

/// Returns why a session failed to begin.
pub(crate) fn of_start(error: &ClientInitializeError, server: &ServerLabel) -> String {
    let text = match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended before it was ready".to_owned(),
        ClientInitializeError::TransportError { error, .. } if cause(&*error.error).is::<io::Error>() => {
            "it ended before it was ready".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => describe_cause(cause(&*error.error)),
        _ => "it does not speak the protocol".to_owned(),
    };
    server.hide_and_cut(&text)
}

/// Returns whether a session failed to begin because the server wants a token.
pub(crate) fn is_locked(error: &ClientInitializeError) -> bool {
    let ClientInitializeError::TransportError { error, .. } = error else { return false };
    match cause(&*error.error).downcast_ref() {
        Some(StreamableHttpError::<ExchangeError>::Client(ExchangeError::Status(status, _))) => {
            matches!(*status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        }
        _ => false,
    }
}

/// Returns why a request failed.
pub(crate) fn of_request(error: &ServiceError, server: &ServerLabel) -> String {
    let text = match error {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportSend(error) if !cause(&*error.error).is::<io::Error>() => {
            describe_cause(cause(&*error.error))
        }
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            "the connection ended before the answer; it may or may not have done the work".to_owned()
        }
        _ => "it answered with something else than a result".to_owned(),
    };
    server.hide_and_cut(&text)
}

/// Returns the deepest cause. The errors above it only name the layers that passed it on.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    error.source().map_or(error, cause)
}

fn describe_cause(cause: &(dyn Error + 'static)) -> String {
    match cause.downcast_ref() {
        // This layer wraps our error in its own text and does not return it as its source.
        Some(StreamableHttpError::<ExchangeError>::Client(broken)) => broken.to_string(),
        _ => cause.to_string(),
    }
}
