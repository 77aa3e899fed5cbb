//! Profile of an agent.

use pudu_base::{Sampling, Thinking};

/// Maximum size of a soul, in bytes.
pub const MAX_SOUL_BYTES: usize = 64 * 1024;

/// Profile of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentProfile {
    /// Its purpose, in a line for people.
    pub about: String,
    /// The model that it wants; the default if not said.
    pub model: Option<String>,
    /// How hard the model thinks; as the conversation has it if not said.
    pub thinking: Option<Thinking>,
    /// How the model answers; as its configuration says if not said.
    pub sampling: Sampling,
    /// The groups of configured tools that it has; all if not said.
    pub tool_groups: Option<Vec<String>>,
    /// The skills that it has; all that are switched on if not said.
    pub skills: Option<Vec<String>>,
    /// Its identity, for the system prompt.
    pub soul: String,
}
