//! The handle by which tools get the connection to their server.

use crate::{call::McpWire, parked::ParkedCalls};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of queued calls that wait for a session. Further calls wait for a slot in the queue.
const WAITING: usize = 32;

/// A request for the connection, with the place for the answer.
pub(crate) type WireRequest = oneshot::Sender<Result<McpWire, String>>;

/// Handle for requesting the server's connection.
#[derive(Clone)]
pub(crate) struct KeeperHandle {
    requests: mpsc::Sender<WireRequest>,
    /// The calls that wait for people.
    pub(crate) parked: Arc<ParkedCalls>,
}

impl KeeperHandle {
    /// Creates a handle, and the receiver of its requests.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<WireRequest>) {
        let (requests, received) = mpsc::channel(WAITING);
        (Self { requests, parked: Arc::default() }, received)
    }

    /// Returns a connection for a request, or the reason why there is none.
    pub(crate) async fn wire(&self) -> Result<McpWire, String> {
        let gone = || "it was closed".to_owned();
        let (ask, answer) = oneshot::channel();
        self.requests.send(ask).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}
