//! Files attached to messages.

use serde::{Deserialize, Serialize};

/// A file attached to a message. It is still on the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The platform's handle for fetching it.
    pub handle: String,
    /// The sender's name for the file, or a generated name. Not safe as a path.
    pub name: String,
    /// Size in bytes, if the platform reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}
