//! How far conversations were read, stored beside the facts that were learnt from them.

use serde::{Deserialize, Serialize};

/// How far a conversation was read when something was learnt from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearntMark {
    /// The conversation's thread.
    pub thread: String,
    /// The last message that was read.
    pub message: String,
}
