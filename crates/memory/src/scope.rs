//! The user and the agent of a memory. Facts belong to one agent and one user; summaries belong to the user.

use crate::error::MemoryRefusal;
use pudu_base::UserId;

/// The bucket of the agent without a name, as in DeerFlow.
pub const DEFAULT_AGENT: &str = "__default__";
/// Maximum length of an agent's name, in bytes.
const MAX_AGENT_BYTES: usize = 128;

/// A user, and the agent that remembers them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryScope {
    user: UserId,
    agent: String,
}

impl MemoryScope {
    /// Creates the scope of the agent without a name.
    #[must_use]
    pub fn for_user(user: UserId) -> Self {
        Self { user, agent: DEFAULT_AGENT.to_owned() }
    }

    /// Creates the scope of a custom agent. Its name is case-insensitive.
    ///
    /// # Errors
    /// When the name is not valid for a folder.
    pub fn of_agent(user: UserId, agent: &str) -> Result<Self, MemoryRefusal> {
        if !is_agent(agent) {
            return Err(MemoryRefusal::BadAgent(crate::text::beginning(agent, MAX_AGENT_BYTES)));
        }
        Ok(Self { user, agent: agent.to_lowercase() })
    }

    /// Returns the user.
    #[must_use]
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Returns the agent's folder: its name in lower case, or `__default__`.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }
}

/// Whether a folder name is valid for an agent.
pub(crate) fn is_agent(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name == DEFAULT_AGENT || (!name.is_empty() && name.len() <= MAX_AGENT_BYTES && name.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_name_is_a_valid_folder_and_ignores_case() {
        let scope = |name| MemoryScope::of_agent(UserId::local(), name);
        assert_eq!(scope("Research").unwrap(), scope("research").unwrap());
        assert_eq!(scope(DEFAULT_AGENT).unwrap(), MemoryScope::for_user(UserId::local()));
        for bad in ["", "..", "a/b", "a_b", "ä"] {
            assert!(scope(bad).is_err(), "{bad}");
        }
    }
}
