//! All servers of a configuration.

use crate::{
    McpConfig, Skipped, keeper::Keeper, listing::ListedTool, server::McpServer, session::McpSession,
    tool::McpTool,
};
use futures_util::future::join_all;
use pudu_base::Tool;
use std::{collections::HashSet, fmt, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The servers that answered, and their tools. A server runs until [`close`](Self::close), or until this and
/// every tool of it are dropped: a run that began with a tool may finish with it after the configuration
/// changed.
pub struct Servers {
    tools: Vec<Arc<dyn Tool>>,
    skipped: Vec<Skipped>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Servers {
    /// Starts the enabled servers side by side and asks for their tools. A server that fails, or that is not
    /// ready within its time, is skipped; nothing here takes longer than the slowest server's time.
    ///
    /// # Cancel safety
    /// Dropping the future ends what was started.
    pub async fn connect(config: McpConfig) -> Self {
        let mut all = Self {
            tools: Vec::new(),
            skipped: config.unusable,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        for Skipped { server, failure } in &all.skipped {
            tracing::warn!(server, "skipped MCP server: {failure}");
        }
        // Each is told of when it is known: one that is silent holds back no line of another.
        let starting = config.servers.into_iter().map(|server| async {
            let begun = McpSession::first(&server).await.map_err(|failure| {
                tracing::warn!(server = server.name, "skipped MCP server: {failure}");
                Skipped { server: server.name.clone(), failure }
            });
            if let Ok((_, found)) = &begun {
                tracing::info!(server = server.name, tools = found.len(), "connected MCP server");
            }
            (server, begun)
        });
        for (server, begun) in join_all(starting).await {
            match begun {
                Ok((session, found)) => all.keep(&Arc::new(server), session, found),
                Err(skipped) => all.skipped.push(skipped),
            }
        }
        all.name_once();
        all
    }

    /// Returns the tools of all servers; no two have one name.
    #[must_use]
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Returns the servers whose tools are not there, and why.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Ends all servers, and returns when no process of theirs is left. Calls from now on are refused.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn keep(&mut self, server: &Arc<McpServer>, session: McpSession, found: Vec<ListedTool>) {
        let (keeper, line) = Keeper::new(server.clone(), session, self.stop.clone());
        self.tasks.spawn(keeper.run());
        let tools = found.into_iter().map(|found| McpTool::new(server.clone(), line.clone(), found));
        self.tools.extend(tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
    }

    /// Leaves out tools whose name another one has already.
    fn name_once(&mut self) {
        let mut names = HashSet::new();
        self.tools.retain(|tool| {
            let name = &tool.spec().name;
            let new = names.insert(name.clone());
            if !new {
                tracing::warn!(tool = name, "dropped tool of MCP server: another one has its name");
            }
            new
        });
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("Servers").field("tools", &names).field("skipped", &self.skipped).finish()
    }
}
