//! Interface for the network access of a sandbox.

use pudu_base::BoxFuture;
use tokio::net::TcpListener;

/// Serves the network requests of a sandbox with a proxy.
pub trait Egress: Send + Sync {
    /// Serves one sandbox until the future is dropped. The listener is on the sandbox's own loopback interface, so no
    /// process outside can reach it.
    fn serve(&self, listener: TcpListener) -> BoxFuture<'static, ()>;
}
