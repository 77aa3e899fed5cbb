//! The Agent Client Protocol. [`AcpAgent::ask`] gives a task to an agent of the operator, which is a child process:
//! Claude Code, Codex, Gemini CLI and others. [`rpc`] has the messages of both sides.
//!
//! Such an agent runs with the rights of pudu's user, as MCP servers do: it needs its own sign-in, the network and the
//! programs of the machine. It gets its own folder for a thread, and no more of the environment than `PATH`, `HOME`,
//! `LANG` and its configured variables. Its messages are foreign: their size is limited, unknown ones are passed over and
//! counted, and its requests for permission are decided by [`AcpHost::permit`].
//!
//! Deliberately absent: files and terminals of the client, which an agent requests only from an editor; sign-in to an
//! agent; a session for several prompts, because a new process per prompt has no state that a crash could lose.

mod answer;
mod client;
mod failure;
mod permission;
pub mod rpc;
mod settings;
mod update;

pub use answer::AcpAnswer;
pub use failure::AcpFailure;
pub use permission::PermissionRequest;
pub use settings::AcpAgent;
pub use update::AcpEvent;

use pudu_base::BoxFuture;

/// The program that gives a task to an agent.
pub trait AcpHost: Send + Sync {
    /// Receives an event of the agent's work.
    fn on_event(&self, event: AcpEvent);

    /// Decides on a request for permission. The time that it takes does not count as work of the agent.
    fn permit<'a>(&'a self, request: &'a PermissionRequest) -> BoxFuture<'a, bool>;
}
