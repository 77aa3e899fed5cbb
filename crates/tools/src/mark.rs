//! Read before write: a file that is there already is only replaced by an agent that knows what stands in it.

use crate::edit::{EditedFile, digest, plain};
use pudu_base::{ToolCx, ToolError, Update};

/// Notes that the agent knows what stands in a file.
pub(crate) fn mark(path: &str, bytes: &[u8]) -> Update {
    Update::Mark { path: plain(path), digest: digest(bytes) }
}

/// Fails unless the agent knows exactly this of a file, or what it knew was changed by its own calls alone.
pub(crate) fn knows(cx: &ToolCx, file: &EditedFile, path: &str, bytes: &[u8]) -> Result<(), ToolError> {
    let now = digest(bytes);
    match cx.marks.of(&plain(path)) {
        Some(known) if known == now || file.led(known, &now) => Ok(()),
        Some(_) => Err(ToolError(format!("{path} has changed since you read it: read it again first"))),
        None => Err(unread(path)),
    }
}

fn unread(path: &str) -> ToolError {
    ToolError(format!("{path} exists and you have not read it: read it first, or choose another name"))
}
