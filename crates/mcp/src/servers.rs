//! All servers of a configuration.

use crate::{
    McpConfig, Skipped, ToolNote,
    catalogue::{Reporter, ServerCatalogue, Unstarted},
    keeper::Keeper,
};
use pudu_base::{NamedPrompt, Tool, ToolServerReport};
use std::{fmt, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The servers of a configuration, and the tools of those that answer. A server that is away is tried again, and the
/// tools of a server are listed again when it says that they changed. A server runs until [`close`](Self::close), or
/// until it is no longer in the configuration and all of its tools are dropped: a run that began with a tool can
/// continue to use it.
pub struct Servers {
    catalogue: Arc<ServerCatalogue>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Servers {
    /// Starts the enabled servers concurrently and requests their tools. A server that fails, or that is not ready in
    /// time, is skipped for now. This takes no longer than the longest of the servers' timeouts.
    ///
    /// # Cancel safety
    /// Dropping the future ends the servers that have been started.
    pub async fn connect(config: McpConfig) -> Self {
        let servers = Self::default();
        servers.replace(config, false).await;
        servers
    }

    /// Uses another configuration. Servers whose configuration did not change keep their sessions, unless `all` reconnect.
    /// Returns when the first start of each new server has ended.
    pub async fn replace(&self, config: McpConfig, all: bool) {
        let McpConfig { servers, unusable, disabled, is_reserved, .. } = config;
        for Skipped { server, failure } in &unusable {
            tracing::warn!(server, "skipped MCP server: {failure}");
        }
        let unstarted = Unstarted { unusable, disabled, is_reserved };
        self.catalogue.replace(servers, unstarted, all, |id, server| {
            let report = Reporter::new(&self.catalogue, id);
            let (keeper, line) = Keeper::new(server, report, self.stop.clone());
            self.tasks.spawn(keeper.run());
            line
        });
        self.catalogue.settled().await;
    }

    /// Returns a receiver that is notified when the tools or the state of a server changed.
    #[must_use]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.catalogue.changes()
    }

    /// Returns the tools of all servers, with unique names.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.catalogue.tools()
    }

    /// Returns the prompts of all servers, with unique names.
    #[must_use]
    pub fn prompts(&self) -> Vec<Arc<dyn NamedPrompt>> {
        self.catalogue.prompts()
    }

    /// Returns the servers whose tools are unavailable, with the reasons.
    #[must_use]
    pub fn skipped(&self) -> Vec<Skipped> {
        self.catalogue.skipped()
    }

    /// Returns the notes on the tools of the servers that answered.
    #[must_use]
    pub fn notes(&self) -> Vec<ToolNote> {
        self.catalogue.notes()
    }

    /// Returns the state of each server.
    #[must_use]
    pub fn reports(&self) -> Vec<ToolServerReport> {
        self.catalogue.reports()
    }

    /// Ends all servers, and returns when all sessions are closed. Later calls are refused.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Default for Servers {
    fn default() -> Self {
        Self {
            catalogue: Arc::new(ServerCatalogue::new()),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools();
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("Servers").field("tools", &names).field("skipped", &self.skipped()).finish()
    }
}
