//! Reasons why a document was not converted to Markdown.

use serde::{Deserialize, Serialize};

/// Reason why a document was not converted to Markdown. The texts are written for the sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Error {
    /// The file is not a document of a known kind, which is not a failure.
    #[error("it is not a document that can be converted")]
    Unknown,
    /// The document is refused, for example because its kind is not supported.
    #[error("{0}")]
    Refused(String),
    /// The document needs a password.
    #[error("it is protected by a password: send it without one")]
    Protected,
    /// The document exceeds a limit.
    #[error("it is too large: {0}")]
    TooLarge(String),
    /// The content is damaged.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The document contains no text.
    #[error("it has no text, perhaps only pictures")]
    Empty,
    /// Reading the document exceeded the time limit.
    #[error("it took too long to read")]
    TooSlow,
    /// Reading the document exceeded the memory limit.
    #[error("it takes too much memory to read")]
    TooHungry,
    /// The reader crashed.
    #[error("the reader crashed: the file may be damaged or very unusual")]
    Broke,
    /// No reader was available. A later attempt may succeed.
    #[error("it could not be read just now: {0}")]
    Unavailable(String),
}
