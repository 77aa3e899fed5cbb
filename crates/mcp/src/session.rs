//! A session with a server: start, use, end.

use crate::{
    failure::{self, ServerFailure},
    http,
    listing::{self, McpWire, ToolList},
    pipe::ServerPipe,
    server::{McpServer, Transport},
    stdio::{self, Process},
};
use rmcp::{
    RoleClient, ServiceExt,
    model::{ClientCapabilities, ClientConfig, Implementation},
    service::RunningService,
};
use std::{future::pending, time::Duration};
use tokio::time::timeout;

/// Timeout of the protocol's part of a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session with a server.
pub(crate) struct McpSession {
    // Declared before the process, so that the process's input is closed first.
    service: RunningService<RoleClient, ClientConfig>,
    process: Option<Process>,
}

impl McpSession {
    /// Starts a session.
    pub(crate) async fn start(server: &McpServer) -> Result<Self, ServerFailure> {
        let begun = timeout(server.session_timeout, Self::begin(server)).await;
        begun.unwrap_or(Err(ServerFailure::Slow(server.session_timeout)))
    }

    /// Starts a session and lists the server's tools.
    pub(crate) async fn first(server: &McpServer) -> Result<(Self, ToolList), ServerFailure> {
        let begun = timeout(server.session_timeout, async {
            let session = Self::begin(server).await?;
            match listing::ask(session.wire(), server).await {
                Ok(found) => Ok((session, found)),
                Err(error) => {
                    let hint = failure::of_request(&error, &server.label);
                    Err(ServerFailure::Down(format!("its tools cannot be listed: {hint}")))
                }
            }
        });
        begun.await.unwrap_or(Err(ServerFailure::Slow(server.session_timeout)))
    }

    async fn begin(server: &McpServer) -> Result<Self, ServerFailure> {
        match &server.transport {
            Transport::Stdio(command) => {
                let (process, (stdout, stdin)) =
                    stdio::start(command, &server.label).map_err(ServerFailure::Down)?;
                match client_config().serve(ServerPipe::new(stdout, stdin, server.label.clone())).await {
                    Ok(service) => Ok(Self { service, process: Some(process) }),
                    Err(error) => Err(explain(&failure::of_start(&error, &server.label), process).await),
                }
            }
            Transport::Http(endpoint) => {
                let http = pudu_net::client().map_err(|error| ServerFailure::Down(error.to_string()))?;
                let served = client_config().serve(http::transport(endpoint.clone(), http)).await;
                let service =
                    served.map_err(|error| ServerFailure::Down(failure::of_start(&error, &server.label)))?;
                Ok(Self { service, process: None })
            }
        }
    }

    pub(crate) fn wire(&self) -> &McpWire {
        self.service.peer()
    }

    /// Returns whether requests are still possible.
    pub(crate) fn is_open(&self) -> bool {
        !self.service.is_transport_closed()
    }

    /// Waits for the end of the child; for ever if the server is not a child.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn ended(&mut self) {
        match &mut self.process {
            Some(process) => process.ended().await,
            None => pending().await,
        }
    }

    /// Ends the session gracefully.
    pub(crate) async fn close(mut self) {
        // On a timeout or failure the session is dropped, which ends it as well.
        self.service.close_with_timeout(CLOSE_TIMEOUT).await.ok();
        if let Some(process) = self.process {
            process.close().await;
        }
    }
}

/// Appends a child's error output to the reason why it is unavailable.
async fn explain(reason: &str, process: Process) -> ServerFailure {
    let complaint = process.complaint().await;
    ServerFailure::Down(if complaint.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}; it complained: {complaint}")
    })
}

/// Returns the client's description, without any capabilities.
fn client_config() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("pudu", env!("CARGO_PKG_VERSION")))
}
