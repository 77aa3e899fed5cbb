//! Specification of one command's sandbox, and why there may be none: the same whether this system has
//! namespaces or not.

use crate::{CommandLimits, Egress, mounts::Mount};
use pudu_base::Network;
use std::path::Path;

/// Why this machine cannot confine commands, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unconfined {
    /// The kernel's error.
    pub why: String,
    /// The remedy for an operator.
    pub help: String,
}

/// Specification of one command's sandbox.
pub(crate) struct JailSpec<'a> {
    pub(crate) environment: &'a [(String, String)],
    pub(crate) mounts: Vec<Mount>,
    pub(crate) network: Network,
    pub(crate) limits: CommandLimits,
    /// The folder whose size is watched.
    pub(crate) disk: Option<&'a Path>,
    /// Serves the command's network access.
    pub(crate) egress: Option<&'a dyn Egress>,
}
