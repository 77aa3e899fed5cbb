//! The agent for embedding in another program: a folder, a model, and the methods of DeerFlow's client.
//!
//! Deliberately absent: chats, HTTP and configuration files.

pub mod embed;

pub use pudu_agent as agent;
pub use pudu_base as base;
pub use pudu_containers as containers;
pub use pudu_documents as documents;
pub use pudu_guardrails as guardrails;
pub use pudu_harness as harness;
pub use pudu_langgraph as wire;
pub use pudu_mcp as mcp;
pub use pudu_memory as memories;
pub use pudu_model as model;
pub use pudu_net as net;
pub use pudu_runs as runs;
pub use pudu_sandbox as sandbox;
pub use pudu_skills as skills;
pub use pudu_store as store;
pub use pudu_tools as tools;

use pudu_agent::Agent;
use pudu_runs::RunManager;

/// An agent with its runs.
#[derive(Clone)]
pub struct Client(RunManager);

impl Client {
    /// Returns the agent: its setup, files, memory and skills.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        self.0.agent()
    }

    /// Returns the manager of the agent's runs.
    #[must_use]
    pub fn runs(&self) -> &RunManager {
        &self.0
    }
}

impl From<RunManager> for Client {
    fn from(runs: RunManager) -> Self {
        Self(runs)
    }
}
