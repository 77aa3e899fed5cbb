//! Extent of a daemon.

use pudu_config::{AccountConfig, HotConfig};

/// Extent of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Whole,
    /// The HTTP API alone, on a free port of the loopback address and with the token for every request: no platform.
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
