//! Specification of one command's sandbox, and the error when commands cannot be confined. Also used on systems without
//! namespaces.

use crate::{CommandLimits, Egress, mounts::Mount};
use pudu_base::Network;
use std::path::Path;

/// Reason why this machine cannot confine commands, and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unconfined {
    /// The reason.
    pub why: String,
    /// The fix for the operator.
    pub help: String,
}

/// Specification of one command's sandbox.
pub(crate) struct JailSpec<'a> {
    pub(crate) environment: &'a [(String, String)],
    pub(crate) mounts: Vec<Mount>,
    pub(crate) network: Network,
    pub(crate) limits: CommandLimits,
    /// Folder whose size is monitored.
    pub(crate) disk: Option<&'a Path>,
    /// Serves the command's network access.
    pub(crate) egress: Option<&'a dyn Egress>,
}
