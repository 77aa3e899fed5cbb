//! The agent's own tools.
