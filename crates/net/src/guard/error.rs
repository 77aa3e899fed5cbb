//! Failures of guarded fetches.

use std::time::Duration;

/// Why nothing came back. The texts are for whoever chose the URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The URL, or where it leads, is not to be fetched; another may be.
    #[error("{0}")]
    Refused(String),
    /// The host cannot be reached, or broke off; it may be there later.
    #[error("{0}")]
    Unreachable(String),
    /// The body is larger than the bounds.
    #[error("what is there is larger than {} KiB", .0 / 1024)]
    TooLarge(usize),
    /// It took longer than the bounds.
    #[error("it took longer than {} s", .0.as_secs())]
    TooSlow(Duration),
}
