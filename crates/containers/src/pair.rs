//! A sandbox whose commands run in one place and whose files are reached in another: a container, and the folder of
//! this machine that it shows.

use pudu_base::{BoxFuture, DirEntry, Exec, Sandbox, SandboxError, ShellCommand, Variable};
use std::sync::Arc;

/// Runs commands; what files they find is somebody else's business.
pub trait Runner: Send + Sync {
    /// Runs a shell command. Dropping the future kills what it started.
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>>;

    /// Like `exec`, with variables of this one command: see [`Sandbox::exec_with`].
    fn exec_with<'a>(
        &'a self,
        command: &'a ShellCommand,
        variables: &'a [Variable],
    ) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        let command = command.with(variables);
        Box::pin(async move { self.exec(&command).await })
    }
}

/// Commands from one, files from another.
pub struct Pair {
    shell: Arc<dyn Runner>,
    files: Arc<dyn Sandbox>,
}

impl Pair {
    /// Puts the two together.
    #[must_use]
    pub fn new(shell: Arc<dyn Runner>, files: Arc<dyn Sandbox>) -> Self {
        Self { shell, files }
    }
}

impl Sandbox for Pair {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        self.shell.exec(command)
    }

    fn exec_with<'a>(
        &'a self,
        command: &'a ShellCommand,
        variables: &'a [Variable],
    ) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        self.shell.exec_with(command, variables)
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
