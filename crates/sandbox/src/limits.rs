//! Resource limits of a command.

use serde::{Deserialize, Serialize};

/// Resource limits of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Memory of all its processes together, in bytes.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// How large the thread's folder may become, in bytes.
    pub disk: u64,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { memory: 2 << 30, processes: 256, disk: 2 << 30 }
    }
}
