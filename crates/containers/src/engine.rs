//! The port to whoever runs containers.

use pudu_base::{BoxFuture, Sandbox, SandboxError, ThreadFolder, digest};
use pudu_sandbox::Mount;
use std::{fmt, sync::Arc};

/// Names a container: the same thread has the same one, whichever daemon asks and however often it started.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoxId(String);

impl BoxId {
    /// Takes a name as it is.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns a thread's: DeerFlow's scheme, 16 hexadecimal digits.
    #[must_use]
    pub fn of(folder: &ThreadFolder) -> Self {
        Self(fingerprint(&format!("{}:{}", folder.owner, folder.thread)))
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

/// Returns the first 16 hexadecimal digits of a text's SHA-256.
pub(crate) fn fingerprint(text: &str) -> String {
    digest(text).chars().take(16).collect()
}

/// Order for a container: its thread and its mounts.
#[derive(Clone)]
pub struct Order {
    /// Its name.
    pub id: BoxId,
    /// The thread that owns it, and whose that is.
    pub folder: ThreadFolder,
    /// The mounts: the thread's own folder (`/mnt/user-data`) first, then parents before what lies in them.
    /// All of it is there on this machine.
    pub mounts: Vec<Mount>,
    /// The thread's files as they are reached on this machine, without any container. It has no shell.
    pub files: Arc<dyn Sandbox>,
}

/// Makes containers, finds them again, and takes them away. Nothing here is called twice at the same time for one
/// container; the [`Pool`](crate::Pool) sees to that.
pub trait ContainerEngine: Send + Sync {
    /// Returns a thread's container, ready to work in: the one that runs already, whoever started it, if it was made
    /// to the same order, or a new one. One that was made to another order is replaced.
    fn start<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>>;

    /// Returns whether a container still runs.
    fn alive<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, bool>;

    /// Takes a container away, with all that runs in it. One that is not there is no error.
    fn stop<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), SandboxError>>;

    /// Returns the containers of this daemon that run, whoever started them.
    fn running(&self) -> BoxFuture<'_, Result<Vec<BoxId>, SandboxError>>;

    /// Returns whether its containers work in the folders of this machine.
    fn shares_folders(&self) -> bool {
        true
    }

    /// Waits for what goes on in the background, such as killing commands that were given up.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_name_that_deerflow_gives_its_container() {
        // printf %s default:thread-1 | sha256sum
        assert_eq!(BoxId::of(&"thread-1".into()).as_str(), "fe0dc8182dec7b77");
    }
}
