//! Files that tools read and make, and what a model is told where that fails.

use pudu_base::{Sandbox, SandboxError, ToolError};

/// Maximum size of a file that a tool reads or makes, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

// Not `From`: neither type is ours.
#[allow(clippy::needless_pass_by_value, reason = "fits map_err")]
pub(crate) fn failed(error: SandboxError) -> ToolError {
    ToolError(error.to_string())
}

/// Refuses to make a text file that no tool could read again.
pub(crate) fn check_size(path: &str, size: u64) -> Result<(), ToolError> {
    if size <= MAX_FILE_BYTES {
        return Ok(());
    }
    Err(ToolError(format!(
        "{path} would have {size} bytes, more than the {MAX_FILE_BYTES} that a text file may have here: write less at \
         once, or use bash"
    )))
}

/// Reads a file that has to be text.
pub(crate) async fn read_text(sandbox: &dyn Sandbox, path: &str) -> Result<String, ToolError> {
    text(read(sandbox, path).await?, path)
}

/// Reads a file.
pub(crate) async fn read(sandbox: &dyn Sandbox, path: &str) -> Result<Vec<u8>, ToolError> {
    sandbox.read(path, MAX_FILE_BYTES).await.map_err(failed)
}

/// Returns what was read as text.
pub(crate) fn text(bytes: Vec<u8>, path: &str) -> Result<String, ToolError> {
    String::from_utf8(bytes).map_err(|_| ToolError(format!("{path} is not a text file in UTF-8")))
}
