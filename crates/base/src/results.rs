//! The port to where results go that are too long for a model.

use crate::{BoxFuture, SandboxError};

/// Keeps whole results where the agent can read them part by part.
pub trait ResultFiles: Send + Sync {
    /// Keeps a tool's result, and returns its path as the agent knows it. How many are kept is bounded: the oldest
    /// ones go.
    fn keep<'a>(&'a self, tool: &'a str, text: &'a str) -> BoxFuture<'a, Result<String, SandboxError>>;
}
