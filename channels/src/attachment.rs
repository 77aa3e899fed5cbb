//! Files of messages.

use serde::{Deserialize, Serialize};

/// A file of a message, still on the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The platform's handle for fetching it.
    pub handle: String,
    /// The name that the sender gave, or one made up. Not safe as a path.
    pub name: String,
    /// Size in bytes, where the platform says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}
