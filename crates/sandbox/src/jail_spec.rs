//! What one command gets, and why it may get none: the same whether this system has namespaces or not.

use crate::{CommandLimits, local::Egress, mounts::Mount};
use pudu_base::Network;
use std::path::Path;

/// Why this machine cannot confine commands, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unconfined {
    /// What the kernel said.
    pub why: String,
    /// What an operator can do.
    pub help: String,
}

/// What one command gets.
pub(crate) struct JailSpec<'a> {
    pub(crate) environment: &'a [(String, String)],
    pub(crate) mounts: Vec<Mount>,
    pub(crate) network: Network,
    pub(crate) limits: CommandLimits,
    /// The folder whose size is watched.
    pub(crate) disk: Option<&'a Path>,
    /// Who serves what the command wants of the network.
    pub(crate) egress: Option<&'a dyn Egress>,
}
