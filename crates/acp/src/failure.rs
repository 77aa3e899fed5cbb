//! Reasons why an agent did not finish its work.

use crate::AcpAgent;
use std::{path::Path, time::Duration};

/// Why an agent did not finish. The texts are for models and people, and contain no configured value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcpFailure {
    /// Its program does not exist.
    #[error("{0}")]
    NotInstalled(String),
    /// It does not get ready.
    #[error(
        "it is not ready after {0:?}; its `command` may be waiting for a download or a sign-in: run it in a terminal"
    )]
    SlowStart(Duration),
    /// It needs a sign-in.
    #[error("{0}")]
    SignIn(String),
    /// It did not end in time.
    #[error(
        "timed out after {seconds} seconds without finishing. Give it a smaller task, or let the operator \
             increase acp_agents.{agent}.timeout_seconds"
    )]
    Late {
        /// Its name.
        agent: String,
        /// The limit.
        seconds: u64,
    },
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// Returns the advice for an agent whose program does not exist.
pub(crate) fn not_installed(agent: &AcpAgent) -> AcpFailure {
    let program = &agent.command.program;
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let fix = match name {
        "npx" | "npm" | "node" | "bunx" => "install Node.js 22 or newer, which has it".to_owned(),
        "uvx" | "uv" => "install uv (https://docs.astral.sh/uv/), which has it".to_owned(),
        "codex-acp" => adapter("@agentclientprotocol/codex-acp"),
        "claude-agent-acp" | "claude-code-acp" => adapter("@agentclientprotocol/claude-agent-acp"),
        // These programs speak other protocols; adapters speak this one.
        "codex" => {
            format!("Codex speaks the protocol by an adapter: {}", adapter("@agentclientprotocol/codex-acp"))
        }
        "claude" => {
            format!(
                "Claude Code speaks the protocol by an adapter: {}",
                adapter("@agentclientprotocol/claude-agent-acp")
            )
        }
        "gemini" => {
            "install it with `npm install -g @google/gemini-cli`, and write `args: [--acp]`".to_owned()
        }
        "mcode" => "install the MiniMax Code CLI, and write `args: [acp]`".to_owned(),
        _ => "install it, or write its whole path".to_owned(),
    };
    let what = format!("there is no program `{program}` in the PATH of pudu");
    AcpFailure::NotInstalled(format!("{what}. Operator: {fix} (acp_agents.{}.command)", agent.name))
}

fn adapter(package: &str) -> String {
    format!("write `command: npx` and `args: [\"-y\", \"{package}\"]`")
}
