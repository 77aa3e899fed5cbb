//! The ports to the sandboxes that run a thread's commands and hold its files.

use crate::{BoxFuture, ThreadId, UserId, Variable};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// A thread, and the user whose folder contains its files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadFolder {
    /// The user; the local user if unknown.
    pub owner: UserId,
    /// The thread.
    pub thread: ThreadId,
}

impl<T: Into<ThreadId>> From<T> for ThreadFolder {
    fn from(thread: T) -> Self {
        Self { owner: UserId::local(), thread: thread.into() }
    }
}

/// A folder of the host that a sandbox shows in addition to the thread's own, read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFolder {
    /// Path on the host.
    pub host: PathBuf,
    /// Path in the sandbox.
    pub agent: String,
}

/// Provides a sandbox for each thread.
pub trait SandboxProvider: Send + Sync {
    /// Returns a thread's sandbox, and creates it if there is none. Repeated calls for a thread return the same one.
    fn acquire<'a>(
        &'a self,
        folder: &'a ThreadFolder,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>>;

    /// Like `acquire`, with additional folders for the run's skills. Providers that cannot show any ignore them.
    fn acquire_with<'a>(
        &'a self,
        folder: &'a ThreadFolder,
        _shown: &'a [ShownFolder],
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        self.acquire(folder)
    }

    /// Releases a thread's sandbox, which is not needed for now. Its files stay; everything else may be freed.
    fn release<'a>(&'a self, folder: &'a ThreadFolder) -> BoxFuture<'a, ()>;

    /// Returns whether all files that commands see in a thread's folder are on the host.
    fn keeps_files_here(&self) -> bool {
        true
    }

    /// Returns the shell that runs commands; `None` if there is none.
    fn shell(&self) -> Option<Shell>;
}

/// The shell that runs commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// The host's shell, without isolation.
    Host,
    /// A shell confined by the kernel, with this network access.
    Confined(Network),
}

/// Network access of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Only its own loopback.
    #[default]
    None,
    /// Some domains, through a proxy.
    Proxy,
    /// Everything that the host can reach, including the host itself.
    Full,
}

/// One thread's sandbox. Paths are sandbox paths: absolute, under `/mnt`.
pub trait Sandbox: Send + Sync {
    /// Runs a shell command. Dropping the future kills everything that it started.
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>>;

    /// Reads a whole file of at most `limit` bytes.
    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>>;

    /// Writes a whole file, or appends to it. Creates missing parent folders.
    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>>;

    /// Lists a folder down to `depth` levels, sorted by path, at most `limit` entries.
    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>>;

    /// Returns the size of a plain file, in bytes. Fails on a symlink in the path, if the sandbox can detect symlinks.
    fn measure<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<u64, SandboxError>> {
        Box::pin(async move {
            match self.read(path, 0).await {
                Ok(_) => Ok(0),
                Err(SandboxError::TooLarge { size, .. }) => Ok(size),
                Err(error) => Err(error),
            }
        })
    }
}

/// A shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    /// Script that the shell runs.
    pub script: String,
    /// How long the command may run before it and its children are killed.
    pub timeout: Duration,
    /// Variables of this command, in addition to those of the sandbox.
    pub variables: Vec<Variable>,
}

impl ShellCommand {
    /// Creates a command without variables of its own.
    #[must_use]
    pub fn new(script: String, timeout: Duration) -> Self {
        Self { script, timeout, variables: Vec::new() }
    }

    /// Returns the command with its variables exported in the script, for sandboxes that cannot pass variables.
    #[must_use]
    pub fn exported(&self) -> Self {
        let line = |variable: &Variable| {
            format!("export {}='{}'; ", variable.name, variable.value.replace('\'', r"'\''"))
        };
        Self::new(self.variables.iter().map(line).collect::<String>() + &self.script, self.timeout)
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// Its standard output, cut in the middle if it was too long.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// Its exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// Why the sandbox killed it, if it did.
    pub killed: Option<Killed>,
    /// Whether the middle of either was cut.
    pub cut: bool,
}

/// Why a sandbox killed a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// It timed out.
    Late,
    /// It exceeded this memory limit, in bytes.
    Memory(u64),
    /// The thread's files exceeded this disk limit, in bytes.
    Disk(u64),
    /// The size of the thread's files cannot be measured.
    Uncounted,
    /// The host's disk is almost full.
    HostDisk,
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The sandbox path.
    pub path: String,
    /// Whether it is a folder.
    pub folder: bool,
    /// Size in bytes; 0 for a folder.
    pub size: u64,
}

/// Why an operation of a sandbox failed. The texts are for the model.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The path is outside the sandbox.
    #[error("{path} is outside the sandbox: use a path under /mnt/user-data")]
    Outside {
        /// The requested path.
        path: String,
    },
    /// There is no such file.
    #[error("{path} does not exist")]
    Missing {
        /// The requested path.
        path: String,
    },
    /// The path is read-only.
    #[error("{path} is read-only: write under /mnt/user-data")]
    ReadOnly {
        /// The requested path.
        path: String,
    },
    /// The file is larger than the caller's limit.
    #[error("{path} has {size} bytes, more than the {limit} that can be read at once")]
    TooLarge {
        /// The requested path.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The caller's limit in bytes.
        limit: u64,
    },
    /// The sandbox does not support or allow it.
    #[error("{0}")]
    Refused(String),
    /// The system failed.
    #[error("{path}: {source}")]
    Io {
        /// The requested path.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
}
