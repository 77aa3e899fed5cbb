//! Sections of DeerFlow's configuration that this version of pudu does not use.
//!
//! Such sections are accepted, so that a DeerFlow file works unchanged, and listed in one line at the start, so that
//! operators do not expect an effect. Remove a section from this list when pudu begins to use it.

/// Top-level keys.
pub(super) const SECTIONS: &[&str] = &[
    "agent_storage",
    "dedupe_storage",
    "logging",
    "mcp_tasks",
    "plugins",
    "run_events",
    "run_ownership",
    "stream_bridge",
];
