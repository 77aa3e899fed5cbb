//! Parts of DeerFlow's API that pudu does not have: they answer 404, and say why.

use super::errors::ApiError;

/// A part that pudu does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The connection to Lark's own applications.
    Lark,
    /// Tasks at set times.
    Schedules,
    /// Long tasks of MCP servers.
    McpTasks,
    /// A browser that the agent drives.
    Browser,
    /// Pages about costs.
    Console,
    /// LangGraph's runs at set times.
    Crons,
    /// LangGraph's store.
    Store,
    /// Credentials of a bot that are entered in the browser.
    RuntimeConfig,
    /// Assistants that clients make, change and delete.
    OwnAssistants,
    /// Several runs in one request.
    Batches,
    /// Threads that are deleted by rules.
    Prune,
    /// Streams of all runs of a thread.
    ThreadStreams,
    /// Events of GitHub.
    GithubEvents,
}

impl Part {
    /// Returns the message about a part that is not supported.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Lark => {
                "pudu has no integration of Lark's applications; its bot is an account under `channels`"
            }
            Self::Schedules => "pudu has no scheduled tasks",
            Self::McpTasks => "pudu has no MCP tasks: a call of an MCP tool ends within its run",
            Self::Browser => "pudu drives no browser",
            Self::Console => "pudu has no console; GET /api/usage lists what was spent",
            Self::Crons => "pudu has no crons",
            Self::Store => "pudu has no store for clients; GET /api/memory has what is remembered",
            Self::OwnAssistants => "pudu's assistants are its agents, which /api/agents makes and changes",
            Self::Batches => "pudu takes one run a request",
            Self::Prune => "pudu deletes threads one by one, or by `retention` in its configuration",
            Self::ThreadStreams => "pudu streams single runs: …/runs/{run}/stream",
            Self::GithubEvents => "pudu takes no events of GitHub",
            Self::RuntimeConfig => {
                "pudu takes no credentials over HTTP; whoever runs it writes them into config.yaml"
            }
        }
    }
}

/// Answers that there is no such part.
pub(crate) fn answer(part: Part) -> ApiError {
    ApiError::not_found(part.message())
}
