//! A session with a server, from its start to its end.

use crate::{
    call::McpWire,
    client::McpClient,
    failure::{self, ServerFailure},
    http,
    listing::{self, ToolList},
    pipe::ServerPipe,
    server::{McpServer, Transport},
    stdio::{self, Process},
};
use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError},
};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{sync::Notify, time::timeout};

/// Timeout for closing the session over the protocol.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session with a server.
pub(crate) struct McpSession {
    // Declared before the process, so that the process's input is closed before the process is killed.
    service: RunningService<RoleClient, McpClient>,
    process: Option<Process>,
}

/// Why a session did not begin.
enum StartError {
    /// The server refused the first request.
    Refused(ServerFailure),
    /// The server wants a token.
    Locked(ServerFailure),
    Other(ServerFailure),
}

impl From<StartError> for ServerFailure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Refused(failure) | StartError::Locked(failure) | StartError::Other(failure) => {
                failure
            }
        }
    }
}

impl McpSession {
    /// Starts a session. `tools_changed` is notified when the server says that its tools changed.
    pub(crate) async fn start(
        server: &McpServer,
        tools_changed: &Arc<Notify>,
    ) -> Result<Self, ServerFailure> {
        let session = timeout(server.session_timeout, Self::begin(server, tools_changed)).await;
        session.unwrap_or(Err(ServerFailure::Slow(server.session_timeout)))
    }

    /// Starts a session and lists the server's tools.
    pub(crate) async fn first(
        server: &McpServer,
        tools_changed: &Arc<Notify>,
    ) -> Result<(Self, ToolList), ServerFailure> {
        let start = timeout(server.session_timeout, async {
            let session = Self::begin(server, tools_changed).await?;
            let found = listing::ask(&session.wire().peer, server).await;
            found.map(|found| (session, found)).map_err(|error| cannot_list(&error, server))
        });
        start.await.unwrap_or(Err(ServerFailure::Slow(server.session_timeout)))
    }

    /// Starts a session with a handshake. Servers of a protocol version without handshake refuse that.
    async fn begin(server: &McpServer, tools_changed: &Arc<Notify>) -> Result<Self, ServerFailure> {
        let outcome = Self::begin_as(server, tools_changed, ClientLifecycleMode::Initialize).await;
        let Err(StartError::Refused(refusal)) = outcome else { return outcome.map_err(Into::into) };
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let discover = ClientLifecycleMode::Discover { preferred_versions };
        Self::begin_as(server, tools_changed, discover).await.map_err(|error| match error {
            StartError::Locked(failure) => failure,
            StartError::Refused(_) | StartError::Other(_) => refusal,
        })
    }

    async fn begin_as(
        server: &McpServer,
        tools_changed: &Arc<Notify>,
        mode: ClientLifecycleMode,
    ) -> Result<Self, StartError> {
        let client = McpClient::new(server.label.clone(), Arc::clone(tools_changed));
        match &server.transport {
            Transport::Stdio(command) => {
                let started = stdio::start(command, &server.label);
                let (process, (stdout, stdin)) =
                    started.map_err(|why| StartError::Other(ServerFailure::Down(why)))?;
                let pipe = ServerPipe::new(stdout, stdin, server.label.clone());
                match client.serve_with_lifecycle(pipe, mode).await {
                    Ok(service) => Ok(Self { service, process: Some(process) }),
                    Err(error) => {
                        let hint = failure::of_start(&error, &server.label);
                        Err(start_error(&error, explain(&hint, process).await))
                    }
                }
            }
            Transport::Http(endpoint) => {
                let http = pudu_net::client()
                    .map_err(|error| StartError::Other(ServerFailure::Down(error.to_string())))?;
                let transport = http::transport(endpoint.clone(), http);
                let served = client.serve_with_lifecycle(transport, mode).await;
                let failed = |error| {
                    start_error(&error, ServerFailure::Down(failure::of_start(&error, &server.label)))
                };
                Ok(Self { service: served.map_err(failed)?, process: None })
            }
        }
    }

    pub(crate) fn wire(&self) -> McpWire {
        McpWire { peer: self.service.peer().clone(), client: self.service.service().clone() }
    }

    /// Returns whether requests are still possible.
    pub(crate) fn is_open(&self) -> bool {
        !self.service.is_transport_closed()
    }

    /// Waits until the child process ends. Never completes if the server is not a child process.
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
        // On a timeout or failure, the session is dropped, which ends it as well.
        self.service.close_with_timeout(CLOSE_TIMEOUT).await.ok();
        if let Some(process) = self.process {
            process.close().await;
        }
    }
}

/// Appends the last line of a child's error output to the reason why it is unavailable.
async fn explain(reason: &str, process: Process) -> ServerFailure {
    let complaint = process.complaint().await;
    ServerFailure::Down(if complaint.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}; it complained: {complaint}")
    })
}

fn start_error(error: &ClientInitializeError, failure: ServerFailure) -> StartError {
    match error {
        ClientInitializeError::JsonRpcError(_) => StartError::Refused(failure),
        _ if failure::is_locked(error) => StartError::Locked(failure),
        _ => StartError::Other(failure),
    }
}

/// Returns the reason why the list of a server's tools is unavailable.
pub(crate) fn cannot_list(error: &ServiceError, server: &McpServer) -> ServerFailure {
    let hint = failure::of_request(error, &server.label);
    ServerFailure::Down(format!("its tools cannot be listed: {hint}"))
}
