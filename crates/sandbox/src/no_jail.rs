//! Stand-in on systems without namespaces: every probe fails.

use crate::{Unconfined, jail_spec::Cell};
use pudu_base::{Command, Exec, SandboxError};
use std::path::PathBuf;

/// Mechanisms to confine commands. This system has none.
#[derive(Debug)]
pub enum Jail {}

impl Jail {
    /// Fails, since this system has no namespaces.
    ///
    /// # Errors
    /// Always.
    #[allow(clippy::unused_async, reason = "elsewhere there is something to wait for")]
    pub async fn probe() -> Result<Self, Unconfined> {
        Err(Unconfined {
            why: "commands are confined by Linux only".to_owned(),
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

    /// Never called: there is no jail.
    #[must_use]
    pub fn owner(&self) -> Option<(u32, u32)> {
        match *self {}
    }

    /// Never called: there is no jail.
    #[must_use]
    pub fn words(&self) -> String {
        match *self {}
    }

    #[allow(clippy::unused_async, reason = "elsewhere there is something to wait for")]
    pub(crate) async fn run(&self, _: &Command, _: Cell<'_>) -> Result<Exec, SandboxError> {
        match *self {}
    }
}

/// Does nothing: this system has no way to drop privileges.
///
/// # Errors
/// Never.
pub fn withdraw() -> Result<(), String> {
    Ok(())
}

/// Returns immediately: no program is started as a sandbox here.
pub fn enter() {}
