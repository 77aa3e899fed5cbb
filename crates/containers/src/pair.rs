//! A sandbox that runs commands in one way and accesses files in another, for example in a container and in the folder
//! on this machine that is mounted there.

use pudu_base::{BoxFuture, DirEntry, Exec, Sandbox, SandboxError, ShellCommand};
use std::sync::Arc;

/// Runs commands, independently of the access to files.
pub trait Runner: Send + Sync {
    /// Runs a shell command. Dropping the future kills the command's processes.
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>>;
}

/// Runs commands with a runner, and accesses files in another sandbox.
pub struct Pair {
    shell: Arc<dyn Runner>,
    files: Arc<dyn Sandbox>,
}

impl Pair {
    /// Creates a pair.
    #[must_use]
    pub fn new(shell: Arc<dyn Runner>, files: Arc<dyn Sandbox>) -> Self {
        Self { shell, files }
    }
}

impl Sandbox for Pair {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        self.shell.exec(command)
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        self.files.read(path, limit)
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        self.files.write(path, bytes, append)
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        self.files.list(path, depth, limit)
    }

    fn measure<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<u64, SandboxError>> {
        self.files.measure(path)
    }
}
