//! Why a server is unavailable.

use crate::{http::ExchangeError, server::ServerLabel};
use rmcp::{
    service::{ClientInitializeError, ServiceError},
    transport::streamable_http_client::StreamableHttpError,
};
use std::{error::Error, io, time::Duration};

/// Why a server is unavailable. The texts contain no secret of the server's entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerFailure {
    /// Its entry has to be fixed.
    #[error("{0}")]
    Config(String),
    /// It could not be started or reached, or does not speak the protocol. A later attempt may succeed.
    #[error("{0}")]
    Down(String),
    /// It did not answer in time.
    #[error("did not get ready within {0:?} (session_init_timeout)")]
    Slow(Duration),
}

/// A server whose tools are unavailable, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server {server}: {failure}")]
pub struct Skipped {
    /// Its name in the configuration.
    pub server: String,
    /// Why.
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
        ClientInitializeError::TransportError { error, .. } => said(cause(&*error.error)),
        _ => "it does not speak the protocol".to_owned(),
    };
    server.hide_and_cut(&text)
}

/// Returns why a request failed.
pub(crate) fn of_request(error: &ServiceError, server: &ServerLabel) -> String {
    let text = match error {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportSend(error) if !cause(&*error.error).is::<io::Error>() => {
            said(cause(&*error.error))
        }
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            "the connection ended before the answer; it may or may not have done the work".to_owned()
        }
        _ => "it answered with something else than a result".to_owned(),
    };
    server.hide_and_cut(&text)
}

/// Returns the deepest cause: the errors above it only name the layers that passed it on.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    error.source().map_or(error, cause)
}

fn said(cause: &(dyn Error + 'static)) -> String {
    match cause.downcast_ref() {
        // The layer above wraps our own error in its own text and does not return it as source.
        Some(StreamableHttpError::<ExchangeError>::Client(broken)) => broken.to_string(),
        _ => cause.to_string(),
    }
}
