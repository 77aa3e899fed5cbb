//! Stand-in for `jail.rs` on systems without namespaces, where every probe fails.

use crate::{Unconfined, jail_spec::JailSpec};
use pudu_base::{Exec, SandboxError, ShellCommand};
use std::path::PathBuf;

/// Mechanisms for confining commands, which this system does not have.
#[derive(Debug)]
pub enum Jail {}

impl Jail {
    /// Fails, since this system has no namespaces.
    ///
    /// # Errors
    /// Always.
    #[allow(clippy::unused_async, reason = "the Linux version is async")]
    pub async fn probe() -> Result<Self, Unconfined> {
        Err(Unconfined {
            why: "commands can only be confined on Linux".to_owned(),
            help: "run pudu on Linux, or in a Linux container".to_owned(),
        })
    }

    /// Fails, since this system has no namespaces.
    ///
    /// # Errors
    /// Always.
    pub async fn probe_with(_: PathBuf) -> Result<Self, Unconfined> {
        Self::probe().await
    }

    /// Never called, because there is no jail.
    #[must_use]
    pub fn owner(&self) -> Option<(u32, u32)> {
        match *self {}
    }

    /// Never called, because there is no jail.
    #[must_use]
    pub fn describe(&self) -> String {
        match *self {}
    }

    #[allow(clippy::unused_async, reason = "the Linux version is async")]
    pub(crate) async fn run(&self, _: &ShellCommand, _: JailSpec<'_>) -> Result<Exec, SandboxError> {
        match *self {}
    }
}

/// Does nothing, because this system has no way to drop privileges.
///
/// # Errors
/// Never.
pub fn withdraw() -> Result<(), String> {
    Ok(())
}

/// Returns immediately, because no program is started as a sandbox here.
pub fn enter() {}
