//! Why a document was not converted to Markdown.

use serde::{Deserialize, Serialize};

/// Why a document was not converted to Markdown. The texts are for the sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Error {
    /// It is not a convertible document, which is no problem.
    #[error("it is no document that can be converted")]
    Unknown,
    /// It is a document of an unsupported kind.
    #[error("{0}")]
    Refused(String),
    /// It needs a password.
    #[error("it is protected by a password: send it without one")]
    Protected,
    /// It exceeds a limit.
    #[error("it is too large: {0}")]
    TooLarge(String),
    /// Its content is damaged.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It contains no text.
    #[error("there is no text in it, perhaps only pictures")]
    Empty,
    /// It exceeded the time limit.
    #[error("it took too long to read")]
    TooSlow,
    /// It exceeded the memory limit.
    #[error("it takes too much memory to read")]
    TooHungry,
    /// The reader crashed on it.
    #[error("its reader broke down over it: it is damaged, or too unusual")]
    Broke,
    /// No reader was available; a later attempt may succeed.
    #[error("it could not be read just now: {0}")]
    Unavailable(String),
}
