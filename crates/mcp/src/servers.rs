//! All servers of a configuration.

use crate::{
    McpConfig, Skipped, ToolNote,
    keeper::Keeper,
    listing::ToolList,
    names::{self, TakenNames},
    server::McpServer,
    session::McpSession,
    tool::McpTool,
};
use futures_util::future::join_all;
use pudu_base::Tool;
use std::{fmt, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The servers that answered, and their tools. A server runs until [`close`](Self::close), or until this and all its
/// tools are dropped: a run that began with a tool may finish with it after the configuration changed.
pub struct Servers {
    tools: Vec<Arc<dyn Tool>>,
    taken: TakenNames,
    skipped: Vec<Skipped>,
    notes: Vec<ToolNote>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Servers {
    /// Starts the enabled servers concurrently and requests their tools. A server that fails, or that is not ready in
    /// time, is skipped; this takes no longer than the slowest server's timeout.
    ///
    /// # Cancel safety
    /// Dropping the future ends the servers that were started.
    pub async fn connect(config: McpConfig) -> Self {
        let mut all = Self {
            tools: Vec::new(),
            taken: TakenNames::new(config.is_reserved),
            skipped: config.unusable,
            notes: Vec::new(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        for Skipped { server, failure } in &all.skipped {
            tracing::warn!(server, "skipped MCP server: {failure}");
        }
        // Each result is logged immediately: a slow server does not delay the log lines of others.
        let starting = config.servers.into_iter().map(|server| async {
            let begun = McpSession::first(&server).await.map_err(|failure| {
                tracing::warn!(server = server.name(), "skipped MCP server: {failure}");
                Skipped { server: server.name().to_owned(), failure }
            });
            if let Ok((_, found)) = &begun {
                tracing::info!(server = server.name(), tools = found.tools.len(), "connected MCP server");
            }
            (server, begun)
        });
        for (server, begun) in join_all(starting).await {
            match begun {
                Ok((session, found)) => all.keep(&Arc::new(server), session, found),
                Err(skipped) => all.skipped.push(skipped),
            }
        }
        all
    }

    /// Returns the tools of all servers, with unique names.
    #[must_use]
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Returns the servers whose tools are unavailable, and why.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Returns the notes on tools of the servers that answered.
    #[must_use]
    pub fn notes(&self) -> &[ToolNote] {
        &self.notes
    }

    /// Ends all servers, and returns when none of their processes is left. Later calls are refused.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn keep(&mut self, server: &Arc<McpServer>, session: McpSession, found: ToolList) {
        let (keeper, line) = Keeper::new(server.clone(), session, self.stop.clone());
        self.tasks.spawn(keeper.run());
        self.notes.extend(found.notes);
        let remotes: Vec<&str> = found.tools.iter().map(|tool| tool.remote.as_str()).collect();
        let names = names::assign(server.name(), server.prefix, &remotes, &mut self.taken);
        for (name, tool) in names.into_iter().zip(found.tools) {
            if !name.ends_with(&tool.remote) {
                tracing::info!(
                    server = server.name(),
                    tool = tool.remote,
                    name,
                    "renamed tool of MCP server"
                );
            }
            self.tools.push(Arc::new(McpTool::new(server.clone(), line.clone(), name, tool)));
        }
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("Servers").field("tools", &names).field("skipped", &self.skipped).finish()
    }
}
