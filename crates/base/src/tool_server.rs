//! The port to servers whose tools agents use, and the reports on them.

use crate::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The servers of the configuration.
pub trait ToolServers: Send + Sync {
    /// Returns the state of each server.
    fn report(&self) -> Vec<ToolServerReport>;

    /// Reconnects all servers in the background.
    fn reconnect(&self);

    /// Connects to one server or to all in sessions of their own, lists their tools and ends the sessions. The report is
    /// empty if there is no such server.
    ///
    /// # Errors
    /// If the configuration of the servers cannot be used.
    fn test<'a>(&'a self, name: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ToolServerReport>, String>>;
}

/// A server and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolServerReport {
    /// Its name in the configuration.
    pub name: String,
    /// Its state.
    pub state: ToolServerState,
    /// Names of its tools, as models use them.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The server's own names of the tools that the configuration disables.
    #[serde(default)]
    pub disabled_tools: Vec<String>,
    /// Time until it had listed its tools, in seconds.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The reason why its tools are unavailable.
    #[serde(default)]
    pub problem: Option<String>,
    /// Suggestion for an operator.
    #[serde(default)]
    pub fix: Option<String>,
    /// Notes on tools that were repaired or left out.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// State of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolServerState {
    /// The configuration disables it.
    Disabled,
    /// This process does not connect to servers.
    Stopped,
    /// Its first start has not ended.
    Starting,
    /// Its tools are available.
    Ready,
    /// Its tools are unavailable.
    Away,
}

impl ToolServerReport {
    /// Returns a report without details.
    #[must_use]
    pub fn new(name: &str, state: ToolServerState) -> Self {
        Self {
            name: name.to_owned(),
            state,
            tools: Vec::new(),
            disabled_tools: Vec::new(),
            seconds: None,
            problem: None,
            fix: None,
            notes: Vec::new(),
        }
    }
}
