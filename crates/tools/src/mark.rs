//! Read before write: a file that is there already is only replaced by an agent that knows what stands in it.

use pudu_base::{ToolCx, ToolError, Update};
use sha2::{Digest, Sha256};

/// Notes that the agent knows what stands in a file.
pub(crate) fn mark(path: &str, bytes: &[u8]) -> Update {
    Update::Mark { path: plain(path), digest: digest(bytes) }
}

/// Fails unless the agent knows exactly this of a file.
pub(crate) fn knows(cx: &ToolCx, path: &str, bytes: &[u8]) -> Result<(), ToolError> {
    match cx.marks.of(&plain(path)) {
        Some(known) if known == digest(bytes) => Ok(()),
        Some(_) => Err(ToolError(format!("{path} has changed since you read it: read it again first"))),
        None => Err(unread(path)),
    }
}

/// Fails unless the agent has read a file at all. Enough where the change itself says what it expects.
pub(crate) fn has_read(cx: &ToolCx, path: &str) -> Result<(), ToolError> {
    cx.marks.of(&plain(path)).map(|_| ()).ok_or_else(|| unread(path))
}

/// Returns the one way to spell a path: what leads upwards is no path of a file here.
pub(crate) fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.flat_map(|part| ["/", part]).collect()
}

fn unread(path: &str) -> ToolError {
    ToolError(format!("{path} exists and you have not read it: read it first, or choose another name"))
}

/// Sixteen bytes of SHA-256, in hex.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
