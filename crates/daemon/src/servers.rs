//! MCP servers of the daemon: connected in the background, so that a slow one does not delay the start. Their tools are
//! available from the next run on.

use pudu_client::{
    base::Tool,
    mcp::{Servers, Skipped, ToolNote},
};
use pudu_config::Start;
use pudu_config::extensions;
use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The MCP servers of the daemon.
#[derive(Default)]
pub struct Extensions {
    servers: Mutex<Option<Servers>>,
}

impl Extensions {
    /// Connects the servers, and reconnects them whenever `again` is notified, until `stop`. `count` makes their tools
    /// available to runs that begin from then on; its argument is whether that is needed.
    pub async fn keep_connected(
        &self,
        start: &Start,
        beside: Option<&Path>,
        again: &Notify,
        stop: &CancellationToken,
        count: impl Fn(bool),
    ) {
        let mut is_first = true;
        while let Some(connected) = stop.run_until_cancelled(self.connect(start, beside)).await {
            count(connected.any || !is_first);
            // Runs that began before lose the tools that they have of these.
            connected.close_former().await;
            is_first = false;
            if stop.run_until_cancelled(again.notified()).await.is_none() {
                return;
            }
        }
    }

    /// Reads the file, if there is one, and starts the servers that it names, in place of those before. Where the file
    /// cannot be used those before stay.
    pub async fn connect(&self, start: &Start, beside: Option<&Path>) -> ConnectedServers {
        let servers = match extensions::load(start, beside) {
            Ok(Some(config)) => Some(Servers::connect(config).await),
            Ok(None) => None,
            Err(report) => {
                tracing::error!("failed to load extensions: {report}");
                return ConnectedServers { any: false, former: None };
            }
        };
        let any = servers.as_ref().is_some_and(|servers| !servers.tools().is_empty());
        let mut kept = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        ConnectedServers { any, former: std::mem::replace(&mut *kept, servers) }
    }

    /// Keeps the set of the servers' tools unchanged while the lock is held.
    pub fn lock(&self) -> ExtensionTools<'_> {
        ExtensionTools(self.servers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the servers.
    pub async fn close(&self) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(servers) = servers {
            servers.close().await;
        }
    }
}

/// Outcome of connecting.
pub struct ConnectedServers {
    /// Whether there are tools.
    pub any: bool,
    /// The servers before.
    former: Option<Servers>,
}

impl ConnectedServers {
    /// Closes the previous servers, once their tools are not handed out any more.
    pub async fn close_former(self) {
        if let Some(former) = self.former {
            former.close().await;
        }
    }
}

/// The servers' tools, which do not change as long as this lives.
pub struct ExtensionTools<'a>(MutexGuard<'a, Option<Servers>>);

impl ExtensionTools<'_> {
    /// Returns all tools.
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.0.as_ref().map(|servers| servers.tools().to_vec()).unwrap_or_default()
    }
}

/// Servers that were started for a moment.
pub struct TriedServers {
    /// Number of their tools.
    pub tools: usize,
    /// The servers that are not there.
    pub skipped: Vec<Skipped>,
    /// Everything odd about the tools of the others.
    pub notes: Vec<ToolNote>,
}

/// Starts the servers for a moment. `None` if there are no servers.
pub async fn try_servers(start: &Start, beside: Option<&Path>) -> Option<Result<TriedServers, String>> {
    let config = match extensions::load(start, beside) {
        Ok(config) => config?,
        Err(report) => return Some(Err(report.to_string())),
    };
    let servers = Servers::connect(config).await;
    let (skipped, notes) = (servers.skipped().to_vec(), servers.notes().to_vec());
    let tried = TriedServers { tools: servers.tools().len(), skipped, notes };
    servers.close().await;
    Some(Ok(tried))
}
