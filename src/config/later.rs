//! What DeerFlow's configuration has and this version of pudu does not use.
//!
//! Such sections are accepted, so that a DeerFlow file works as it is, and they are named in one line at the
//! start, so that nobody believes that they do something. A part of pudu that begins to use one takes it out
//! of here.

/// Top-level keys.
pub(super) const SECTIONS: &[&str] = &[
    "acp_agents",
    "agent_storage",
    "auth",
    "authorization",
    "channel_connections",
    "circuit_breaker",
    "dedupe_storage",
    "extensions",
    "guardrails",
    "input_polish",
    "llm_call",
    "logging",
    "loop_detection",
    "mcp_tasks",
    "memory",
    "plugins",
    "read_before_write",
    "run_events",
    "run_ownership",
    "safety_finish_reason",
    "scheduler",
    "skill_evolution",
    "skill_scan",
    "stream_bridge",
    "suggestions",
    "summarization",
    "title",
    "token_budget",
    "token_usage",
    "tool_progress",
];
