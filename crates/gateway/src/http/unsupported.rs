//! Unsupported parts of DeerFlow's and LangGraph's APIs. They return 404 with the reason.

use super::errors::ApiError;

/// An unsupported part of the API.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The connection to Lark's own apps.
    Lark,
    /// Long-running tasks of MCP servers.
    McpTasks,
    /// A browser controlled by the agent.
    Browser,
    /// Pages about cost.
    Console,
    /// LangGraph's scheduled runs.
    Crons,
    /// LangGraph's store.
    Store,
    /// Credentials of a bot entered in the browser.
    RuntimeConfig,
    /// Assistants created, changed and deleted by clients.
    OwnAssistants,
    /// Several runs in one request.
    Batches,
    /// Deletion of threads by rules.
    Prune,
    /// Streams of all runs of a thread in the frames of runs.
    ThreadStreams,
    /// Events of GitHub.
    GithubEvents,
}

impl Part {
    /// Returns the message about a part that is not supported.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Lark => {
                "pudu has no integration with Lark applications; configure its bot under `channels`"
            }
            Self::McpTasks => "pudu has no MCP tasks: every MCP tool call ends within its run",
            Self::Browser => "pudu has no browser control",
            Self::Console => "pudu has no console; GET /api/usage lists the spending",
            Self::Crons => "pudu has no crons; POST /api/scheduled-tasks creates scheduled tasks",
            Self::Store => "pudu has no store for clients; GET /api/memory returns the memory",
            Self::OwnAssistants => "assistants are agents: create and change them with /api/agents",
            Self::Batches => "send one run per request",
            Self::Prune => "delete threads one by one, or set `retention` in the configuration",
            Self::ThreadStreams => {
                "threads are streamed by POST …/stream/events, and single runs by …/runs/{run}/stream"
            }
            Self::GithubEvents => "pudu does not receive GitHub events",
            Self::RuntimeConfig => "pudu accepts no credentials over HTTP; write them into config.yaml",
        }
    }
}

/// Returns the error about an unsupported part.
pub(crate) fn answer(part: Part) -> ApiError {
    ApiError::not_found(part.message())
}
