//! Asynchronous access to custom agents.

use super::{AgentError, Agents, CustomAgent, Roster, unknown_groups};
use crate::Agent;
use pudu_base::UserId;
use pudu_kit::blocking;

impl Agent {
    /// Returns the handle on the agents that are visible to a user; without a user, only the shared ones. Its methods
    /// block; [`Agent::roster`] and [`Agent::custom_agent`] do not.
    #[must_use]
    pub fn agents_of(&self, owner: Option<&UserId>, edits_shared: bool) -> Agents {
        self.0.agents.for_user(owner, edits_shared)
    }

    /// Returns the custom agents that are visible to a user.
    pub async fn roster(&self, owner: Option<&UserId>) -> Roster {
        let agents = self.agents_of(owner, false);
        blocking::run(move || agents.list()).await.unwrap_or_default()
    }

    /// Finds a custom agent: a shared one, or a user's own.
    ///
    /// # Errors
    /// If there is no agent with this name, or it is broken.
    pub async fn custom_agent(&self, name: &str, owner: Option<&UserId>) -> Result<CustomAgent, AgentError> {
        let (agents, name) = (self.agents_of(owner, false), name.to_owned());
        blocking(move || agents.find(&name), AgentError::broken).await
    }

    /// Returns the soul of the lead agent, if it has one.
    ///
    /// # Errors
    /// If the file exists but is invalid.
    pub async fn lead_soul(&self) -> Result<Option<String>, AgentError> {
        let agents = self.0.agents.clone();
        blocking(move || agents.lead_soul(), AgentError::broken).await
    }

    /// Returns a version tag of the lead agent's soul, which changes with every write, even if the text stays the same.
    /// `None` if the soul cannot be accessed now.
    pub async fn lead_soul_mark(&self) -> Option<String> {
        let agents = self.0.agents.clone();
        blocking::run(move || agents.lead_soul_mark()).await.ok().flatten()
    }

    /// Returns whether a custom agent with this name is visible to a user, including broken ones.
    pub async fn has_agent(&self, name: &str, owner: Option<&UserId>) -> bool {
        let (agents, name) = (self.agents_of(owner, false), name.to_owned());
        blocking::run(move || agents.exists(&name)).await.unwrap_or(false)
    }

    /// Normalizes the name of a new agent and checks that it is free for a user.
    ///
    /// # Errors
    /// If the name is taken or invalid, or there are too many agents.
    pub async fn vacant(&self, name: &str, owner: Option<&UserId>) -> Result<String, AgentError> {
        let (agents, name) = (self.agents_of(owner, false), name.to_owned());
        blocking(move || agents.vacant(&name), AgentError::broken).await
    }

    /// Returns the problems of an agent with the current setup, such as a model, tool group or skill that does not
    /// exist.
    pub async fn notes(&self, custom: &CustomAgent) -> Vec<String> {
        custom.notes(&self.setup(), &*self.catalog().await)
    }

    /// Returns a note for each wanted tool group that does not exist.
    #[must_use]
    pub fn unknown_groups(&self, wanted: &[String]) -> Vec<String> {
        unknown_groups(&self.setup().groups, wanted)
    }
}
