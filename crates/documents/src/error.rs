//! Why a document did not become Markdown.

use serde::{Deserialize, Serialize};

/// Why a document did not become Markdown. The texts are for whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Error {
    /// It is none of the documents that are converted. Nothing is wrong with that.
    #[error("it is no document that can be converted")]
    Unknown,
    /// It is a document, but of a kind that is not read.
    #[error("{0}")]
    Refused(String),
    /// It needs a password.
    #[error("it is protected by a password: send it without one")]
    Protected,
    /// It is more than is taken.
    #[error("it is too large: {0}")]
    TooLarge(String),
    /// Its content does not hold together.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// There is no text in it.
    #[error("there is no text in it, perhaps only pictures")]
    Empty,
    /// It took longer than it may.
    #[error("it took too long to read")]
    TooSlow,
    /// It took more memory than it may.
    #[error("it takes too much memory to read")]
    TooHungry,
    /// The reader crashed on it.
    #[error("its reader broke down over it: it is damaged, or too unusual")]
    Broke,
    /// There was nobody to read it; another time there may be.
    #[error("it could not be read just now: {0}")]
    Unavailable(String),
}
