//! Custom agents for callers that must not block.

use super::{AgentError, Agents, CustomAgent, Roster, unknown_groups};
use crate::Client;
use pudu_base::UserId;
use pudu_kit::blocking;

impl Client {
    /// Returns the handle on the agents that a user finds; shared ones alone without a user. Its methods block;
    /// [`Client::roster`] and [`Client::custom_agent`] do not.
    #[must_use]
    pub fn agents_of(&self, owner: Option<&UserId>, edits_shared: bool) -> Agents {
        self.0.agents.for_user(owner, edits_shared)
    }

    /// Returns the custom agents that a user finds.
    pub async fn roster(&self, owner: Option<&UserId>) -> Roster {
        let agents = self.agents_of(owner, false);
        blocking::run(move || agents.list()).await.unwrap_or_default()
    }

    /// Finds a shared custom agent, or one of a user.
    ///
    /// # Errors
    /// When there is none of this name, or it cannot be used.
    pub async fn custom_agent(&self, name: &str, owner: Option<&UserId>) -> Result<CustomAgent, AgentError> {
        let (agents, name) = (self.agents_of(owner, false), name.to_owned());
        blocking(move || agents.find(&name), AgentError::broken).await
    }

    /// Returns the soul of the lead agent, if it has one.
    ///
    /// # Errors
    /// When it is there and cannot be used.
    pub async fn lead_soul(&self) -> Result<Option<String>, AgentError> {
        let agents = self.0.agents.clone();
        blocking(move || agents.lead_soul(), AgentError::broken).await
    }

    /// Returns a mark of the lead agent's soul, which changes with each write, even of the same text. `None` if it
    /// cannot be read at the moment.
    pub async fn lead_soul_mark(&self) -> Option<String> {
        let agents = self.0.agents.clone();
        blocking::run(move || agents.lead_soul_mark()).await.ok().flatten()
    }

    /// Returns whether a user finds a custom agent of that name, one that cannot be used included.
    pub async fn has_agent(&self, name: &str, owner: Option<&UserId>) -> bool {
        let (agents, name) = (self.agents_of(owner, false), name.to_owned());
        blocking::run(move || agents.exists(&name)).await.unwrap_or(false)
    }

    /// Returns the normal form of a new agent's name, if it is free for a user.
    ///
    /// # Errors
    /// When the name is taken or cannot be one, or there are too many.
    pub async fn vacant(&self, name: &str, owner: Option<&UserId>) -> Result<String, AgentError> {
        let (agents, name) = (self.agents_of(owner, false), name.to_owned());
        blocking(move || agents.vacant(&name), AgentError::broken).await
    }

    /// Returns the models, tool groups and skills of an agent that do not exist at the moment.
    pub async fn notes(&self, custom: &CustomAgent) -> Vec<String> {
        custom.notes(&self.setup(), &*self.catalog().await)
    }

    /// Returns a note for each of these tool groups that does not exist.
    #[must_use]
    pub fn unknown_groups(&self, wanted: &[String]) -> Vec<String> {
        unknown_groups(&self.setup().groups, wanted)
    }
}
