//! Error type for the creation of a sandbox.

use std::fmt::Display;

/// A failed step with the kernel's error.
#[derive(Debug)]
pub(crate) struct InitError(pub(crate) String);

/// Adds a description of the failed step to an error.
pub(crate) trait Trying<T> {
    /// Adds the description `what` to the error.
    fn trying(self, what: impl Display) -> Result<T, InitError>;
}

impl<T, E: Display> Trying<T> for Result<T, E> {
    fn trying(self, what: impl Display) -> Result<T, InitError> {
        self.map_err(|error| InitError(format!("{what}: {error}")))
    }
}
