//! The interface of container engines.

use pudu_base::{BoxFuture, Sandbox, SandboxError, ThreadFolder, digest};
use pudu_sandbox::Mount;
use std::{fmt, sync::Arc};

/// ID of a container. A thread's ID is the same in every daemon and after every restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoxId(String);

impl BoxId {
    /// Creates an ID from its text.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the ID of a thread: 16 hexadecimal digits, as in DeerFlow.
    #[must_use]
    pub fn from_folder(folder: &ThreadFolder) -> Self {
        Self(fingerprint(&format!("{}:{}", folder.owner, folder.thread)))
    }

    /// Returns the ID as text.
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

/// Returns the first 16 hexadecimal digits of a text's SHA-256.
pub(crate) fn fingerprint(text: &str) -> String {
    digest(text).chars().take(16).collect()
}

/// Order for a container: its thread and its mounts.
#[derive(Clone)]
pub struct Order {
    /// ID of the container.
    pub id: BoxId,
    /// The thread and its owner.
    pub folder: ThreadFolder,
    /// The mounts, beginning with the thread's folder (`/mnt/user-data`), and with parents before their children. All
    /// sources exist on this machine.
    pub mounts: Vec<Mount>,
    /// The thread's files on this machine, accessed without a container.
    pub files: Arc<dyn Sandbox>,
}

/// Creates, finds and removes containers. The [`Pool`](crate::Pool) ensures that calls for one container never run
/// concurrently.
pub trait ContainerEngine: Send + Sync {
    /// Returns a thread's container when it is ready for commands. A running container with the same specification is
    /// reused, even if another daemon started it; one with another specification is replaced.
    fn start<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>>;

    /// Returns whether a container is running.
    fn alive<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, bool>;

    /// Removes a container and all its processes. It is not an error if the container is missing.
    fn stop<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), SandboxError>>;

    /// Returns the running containers of this home, including those of earlier daemons.
    fn running(&self) -> BoxFuture<'_, Result<Vec<BoxId>, SandboxError>>;

    /// Returns whether the containers use the folders on this machine.
    fn shares_folders(&self) -> bool {
        true
    }

    /// Waits for background work, such as killing abandoned commands.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_id_is_the_same_as_in_deerflow() {
        // printf %s default:thread-1 | sha256sum
        assert_eq!(BoxId::from_folder(&"thread-1".into()).as_str(), "fe0dc8182dec7b77");
    }
}
