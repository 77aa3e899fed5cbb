//! The port that stores tool results that are too long for a model, and their images.

use crate::{BoxFuture, SandboxError};

/// Stores complete results in files that the agent can read in parts.
pub trait ResultFiles: Send + Sync {
    /// Stores a tool's result and returns its sandbox path. The number of stored results is limited; the oldest are
    /// deleted.
    fn keep<'a>(&'a self, tool: &'a str, text: &'a str) -> BoxFuture<'a, Result<String, SandboxError>>;

    /// Stores an image of a tool's result in the same way. `_ending` is the file extension.
    fn keep_image<'a>(
        &'a self,
        _tool: &'a str,
        _ending: &'a str,
        _bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(async { Err(SandboxError::Refused("it cannot be stored".to_owned())) })
    }
}
