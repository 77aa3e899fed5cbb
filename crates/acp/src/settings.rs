//! An agent of the configuration.

use pudu_mcp::child::ServerCommand;
use secrecy::SecretString;
use std::time::Duration;

/// An agent of the configuration.
#[derive(Clone, Debug)]
pub struct AcpAgent {
    /// Its name, for models.
    pub name: String,
    /// Its purpose, for models.
    pub description: String,
    /// The command that starts it.
    pub command: ServerCommand,
    /// The configured values of its environment, which are hidden in its texts.
    pub given: Vec<SecretString>,
    /// Its model; `None` for its own choice.
    pub model: Option<String>,
    /// Whether its requests for permission are granted without asking people.
    pub auto_approve: bool,
    /// Maximum time of its work on a prompt, without the time that people need for decisions.
    pub timeout: Duration,
    /// Names of the MCP servers that it gets.
    pub mcp_servers: Vec<String>,
}
