//! Enforces read before write: an agent can change an existing file only if it has read the current contents.

use crate::edit::{EditedFile, digest, plain};
use pudu_base::{ToolCx, ToolError, Update};

/// Records that the agent knows a file's contents.
pub(crate) fn mark(path: &str, bytes: &[u8]) -> Update {
    Update::Mark { path: plain(path), digest: digest(bytes) }
}

/// Fails unless the agent knows the file's exact contents, or only its own calls have changed them since.
pub(crate) fn knows(cx: &ToolCx, file: &EditedFile, path: &str, bytes: &[u8]) -> Result<(), ToolError> {
    let now = digest(bytes);
    match cx.marks.digest(&plain(path)) {
        Some(known) if known == now || file.led(known, &now) => Ok(()),
        Some(_) => Err(ToolError(format!("{path} has changed since you read it; read it again first"))),
        None => Err(unread(path)),
    }
}

fn unread(path: &str) -> ToolError {
    ToolError(format!("{path} exists and you have not read it; read it first, or choose another name"))
}
