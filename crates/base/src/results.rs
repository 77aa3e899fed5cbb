//! The port to where results go that are too long for a model, and the images that come with them.

use crate::{BoxFuture, SandboxError};

/// Keeps whole results where the agent can read them part by part.
pub trait ResultFiles: Send + Sync {
    /// Keeps a tool's result, and returns its path as the agent knows it. How many are kept is bounded: the oldest
    /// ones go.
    fn keep<'a>(&'a self, tool: &'a str, text: &'a str) -> BoxFuture<'a, Result<String, SandboxError>>;

    /// Keeps an image that came with a tool's result, in the same way. The ending is that of its file's name.
    fn keep_image<'a>(
        &'a self,
        _tool: &'a str,
        _ending: &'a str,
        _bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(async { Err(SandboxError::Refused("it cannot be kept".to_owned())) })
    }
}
