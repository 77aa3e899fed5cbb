//! Extent of a daemon.

use pudu_config::{AccountConfig, HotConfig};

/// Extent of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Whole,
    /// The local chat only: no platform, no HTTP.
    Local,
}

impl Scope {
    /// Returns the accounts that are connected.
    pub(crate) fn accounts(self, hot: &HotConfig) -> &[AccountConfig] {
        match self {
            Self::Whole => &hot.accounts,
            Self::Local => &[],
        }
    }
}
