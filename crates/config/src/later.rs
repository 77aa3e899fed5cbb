//! Sections of DeerFlow's configuration that this version of pudu does not use.
//!
//! Such sections are accepted, so that a DeerFlow file works as it is, and they are named in one line at the
//! start, so that nobody believes that they do something. A part of pudu that begins to use one takes it out
//! of here.

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
