//! Profile of an agent.

use pudu_base::{Sampling, Thinking};

/// Maximum size of a soul, in bytes.
pub const MAX_SOUL_BYTES: usize = 64 * 1024;

/// Profile of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentProfile {
    /// Its purpose, in a line for people.
    pub about: String,
    /// The model; the default if none.
    pub model: Option<String>,
    /// The thinking effort of the model; the conversation's if none.
    pub thinking: Option<Thinking>,
    /// The sampling of the model; fields without a value follow its configuration.
    pub sampling: Sampling,
    /// Its groups of configured tools; all if none.
    pub tool_groups: Option<Vec<String>>,
    /// Its skills; all enabled ones if none.
    pub skills: Option<Vec<String>>,
    /// Its identity, for the system prompt.
    pub soul: String,
}
