//! Resource limits of a command.

use serde::{Deserialize, Serialize};

/// Resource limits of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Maximum memory of all processes together, in bytes.
    pub memory: u64,
    /// Maximum number of processes and threads.
    pub processes: u64,
    /// Maximum size of the thread's folder, in bytes.
    pub disk: u64,
}

impl CommandLimits {
    /// Default limits of a command.
    pub const COMMAND: Self = Self { memory: 2 << 30, processes: 256, disk: 2 << 30 };
    /// Default limits of a container with a complete desktop.
    pub const DESKTOP: Self = Self { memory: 8 << 30, processes: 4096, ..Self::COMMAND };
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self::COMMAND
    }
}
