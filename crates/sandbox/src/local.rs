//! A folder a thread, and the host's shell where the operator allows it.

use crate::{files::Files, shell};
use pudu_base::{BoxFuture, Command, Entry, Exec, Sandbox, SandboxError, SharedFile};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Where the agent finds its files. What lies under it is the thread's own.
pub const ROOT: &str = "/mnt/user-data";

/// One thread's folder on this machine. It is made when it is first used.
pub struct Local {
    files: Arc<Files>,
    host_shell: bool,
}

impl Local {
    /// Names the folder, and says whether commands may run in the host's shell.
    #[must_use]
    pub fn new(folder: PathBuf, host_shell: bool) -> Self {
        Self { files: Arc::new(Files::new(folder)), host_shell }
    }

    /// Returns where a file of the sandbox is on this machine, after checking that it is a plain file
    /// inside.
    ///
    /// # Errors
    /// When the path is outside, missing, or no plain file.
    pub async fn locate(&self, path: &str) -> Result<PathBuf, SandboxError> {
        self.blocking(path, Files::locate).await
    }

    /// Moves a file of this machine in among the uploads, under a safe name that nothing has yet.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub async fn adopt(&self, from: &Path, name: &str) -> Result<SharedFile, SandboxError> {
        let from = from.to_owned();
        self.blocking(name, move |files, name| files.adopt(&from, name)).await
    }

    /// Runs file work where it may block.
    async fn blocking<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&Files, &str) -> Result<T, SandboxError> + Send + 'static,
    ) -> Result<T, SandboxError> {
        let (files, owned) = (self.files.clone(), path.to_owned());
        let done = tokio::task::spawn_blocking(move || work(&files, &owned)).await;
        done.unwrap_or_else(|_| Err(SandboxError::Refused(format!("{path}: the file work broke down"))))
    }
}

impl Sandbox for Local {
    fn exec<'a>(&'a self, command: &'a Command) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(async move {
            if !self.host_shell {
                let text =
                    "there is no shell here: the operator has not allowed one (sandbox.allow_host_bash)";
                return Err(SandboxError::Refused(text.to_owned()));
            }
            let workspace = self.blocking(ROOT, |files, _| files.workspace()).await?;
            shell::run(command, &workspace).await
        })
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(self.blocking(path, move |files, path| files.read(path, limit)))
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        let bytes = bytes.to_vec();
        Box::pin(self.blocking(path, move |files, path| files.write(path, &bytes, append)))
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, SandboxError>> {
        Box::pin(self.blocking(path, move |files, path| files.list(path, depth, limit)))
    }
}

#[cfg(test)]
mod tests;
