//! The ports to the place where a thread's commands run and its files live.

use crate::{BoxFuture, ThreadId, UserId, Variable};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// A thread, and the user in whose folder its files are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadFolder {
    /// The user; the local user if no other is known.
    pub owner: UserId,
    /// The thread.
    pub thread: ThreadId,
}

impl<T: Into<ThreadId>> From<T> for ThreadFolder {
    fn from(thread: T) -> Self {
        Self { owner: UserId::local(), thread: thread.into() }
    }
}

/// A folder of this machine that a sandbox shows besides the thread's own. It can only be read there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFolder {
    /// Path on this machine.
    pub host: PathBuf,
    /// Path in the sandbox.
    pub agent: String,
}

/// Gives each thread its sandbox.
pub trait SandboxProvider: Send + Sync {
    /// Returns a thread's sandbox, and makes one if there is none. A thread that asks twice gets the same place.
    fn acquire<'a>(
        &'a self,
        folder: &'a ThreadFolder,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>>;

    /// Like `acquire`, with these folders besides: the skills of the run. A provider that cannot show any does without.
    fn acquire_with<'a>(
        &'a self,
        folder: &'a ThreadFolder,
        _shown: &'a [ShownFolder],
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        self.acquire(folder)
    }

    /// Releases a thread's sandbox: it is not used for now. Its files stay; everything else may be
    /// released.
    fn release<'a>(&'a self, folder: &'a ThreadFolder) -> BoxFuture<'a, ()>;

    /// Returns whether all files that commands see in a thread's folder are on this machine.
    fn keeps_files_here(&self) -> bool {
        true
    }

    /// Returns which shell commands find there; `None` if there is none for them.
    fn shell(&self) -> Option<Shell>;
}

/// The shell that commands find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// That of the machine, with nothing between.
    Host,
    /// One that the kernel confines, and the network that it has.
    Confined(Network),
}

/// Network access of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing but itself.
    #[default]
    None,
    /// Some domains, through a proxy.
    Proxy,
    /// All that the machine reaches, the machine itself among it.
    Full,
}

/// One thread's sandbox. Paths are the agent's own: absolute, under `/mnt`.
pub trait Sandbox: Send + Sync {
    /// Runs a shell command. Dropping the future kills everything that it started.
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>>;

    /// Reads a whole file of at most `limit` bytes.
    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>>;

    /// Writes a file whole, or appends to it; makes the folders above it.
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

    /// Returns the size of a plain file, in bytes. Fails if a symlink leads to it, as far as the sandbox can
    /// know.
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
    /// After this long everything is killed.
    pub timeout: Duration,
    /// Variables of this one command, besides those of the sandbox.
    pub variables: Vec<Variable>,
}

impl ShellCommand {
    /// Creates a command without variables of its own.
    #[must_use]
    pub fn new(script: String, timeout: Duration) -> Self {
        Self { script, timeout, variables: Vec::new() }
    }

    /// Returns the command with its variables before its script, for sandboxes that have no better way.
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
    /// Its standard output, cut in the middle if there was too much.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// Its exit code; `None` when it was killed.
    pub code: Option<i32>,
    /// Why the sandbox killed it, if it did.
    pub killed: Option<Killed>,
    /// Whether the middle of either was cut.
    pub cut: bool,
}

/// Why a sandbox killed a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// It ran too long.
    Late,
    /// It took more memory than it may, in bytes.
    Memory(u64),
    /// The thread's files became larger than they may, in bytes.
    Disk(u64),
    /// The thread's files cannot be counted.
    Uncounted,
    /// The machine's disk is almost full.
    HostDisk,
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The path, as the agent knows it.
    pub path: String,
    /// Whether it is a folder.
    pub folder: bool,
    /// Size in bytes; 0 for a folder.
    pub size: u64,
}

/// Why the sandbox did not do it. The texts are for the model.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The path is not one of the sandbox's.
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
    /// The path may only be read.
    #[error("{path} is read-only: write under /mnt/user-data")]
    ReadOnly {
        /// The requested path.
        path: String,
    },
    /// The file is larger than the caller takes.
    #[error("{path} has {size} bytes, more than the {limit} that can be read at once")]
    TooLarge {
        /// The requested path.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The caller's limit in bytes.
        limit: u64,
    },
    /// This sandbox does not do that.
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
