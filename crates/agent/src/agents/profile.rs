//! Profile of an agent.

use pudu_base::{Sampling, Thinking};

/// Maximum size of a soul, in bytes.
pub const MAX_SOUL_BYTES: usize = 64 * 1024;

/// Profile of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentProfile {
    /// Its purpose, in one line for people.
    pub about: String,
    /// The model; `None` for the default.
    pub model: Option<String>,
    /// The thinking effort of the model; `None` for the conversation's.
    pub thinking: Option<Thinking>,
    /// The sampling of the model. Fields without a value follow the model's configuration.
    pub sampling: Sampling,
    /// Its groups of configured tools; `None` for all.
    pub tool_groups: Option<Vec<String>>,
    /// Its skills; `None` for all enabled ones.
    pub skills: Option<Vec<String>>,
    /// Its identity, for the system prompt.
    pub soul: String,
}
