//! Sections of DeerFlow's configuration that this version of pudu does not use.
//!
//! Such sections are accepted, so that a DeerFlow file works unchanged, and they are named in one line at the
//! start, so that an operator does not expect an effect. A part of pudu that begins to use one removes it from this
//! list.

/// Top-level keys.
pub(super) const SECTIONS: &[&str] = &[
    "acp_agents",
    "agent_storage",
    "dedupe_storage",
    "logging",
    "mcp_tasks",
    "plugins",
    "run_events",
    "run_ownership",
    "scheduler",
    "stream_bridge",
];
