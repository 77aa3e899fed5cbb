//! The port to whoever runs containers.

use pudu_base::{BoxFuture, Sandbox, SandboxError, ThreadId};
use pudu_sandbox::Mount;
use std::{fmt, sync::Arc};

/// Names a container: the same thread has the same one, whichever daemon asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoxId(String);

impl BoxId {
    /// Takes a name as it is.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes containers, finds them again, and takes them away.
pub trait Engine: Send + Sync {
    /// Returns a thread's container, ready to work in: the one that runs already, whoever started it, or a new
    /// one. The mounts are folders of this machine besides the thread's own.
    fn start<'a>(
        &'a self,
        id: &'a BoxId,
        thread: &'a ThreadId,
        mounts: Vec<Mount>,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>>;

    /// Says whether a container still answers.
    fn alive<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, bool>;

    /// Takes a container away, with all that runs in it. One that is not there is no error.
    fn stop<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), SandboxError>>;

    /// Returns the containers that run, whoever started them.
    fn running(&self) -> BoxFuture<'_, Result<Vec<BoxId>, SandboxError>>;
}
