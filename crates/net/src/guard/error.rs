//! Failures of guarded fetches.

use std::time::Duration;

/// Reason why a fetch failed. The texts are for the author of the URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The URL or its target must not be fetched; another URL may work.
    #[error("{0}")]
    Refused(String),
    /// The host is unreachable or closed the connection; a retry may succeed.
    #[error("{0}")]
    Unreachable(String),
    /// The body exceeds the size limit.
    #[error("the content is larger than {} KiB", .0 / 1024)]
    TooLarge(usize),
    /// The fetch exceeded the time limit.
    #[error("it took longer than {} s", .0.as_secs())]
    TooSlow(Duration),
}
