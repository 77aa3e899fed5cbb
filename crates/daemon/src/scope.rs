//! Selects the parts of a daemon that run.

use pudu_config::{AccountConfig, HotConfig};

/// The parts of a daemon that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Whole,
    /// Only the HTTP API, on a free loopback port, with the token for every request, and without platforms.
    Local,
}

impl Scope {
    /// Returns the accounts to connect.
    pub(crate) fn accounts(self, hot: &HotConfig) -> &[AccountConfig] {
        match self {
            Self::Whole => &hot.accounts,
            Self::Local => &[],
        }
    }
}
