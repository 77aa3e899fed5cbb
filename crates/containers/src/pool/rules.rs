//! Rules of a pool.

use pudu_base::Network;
use std::time::Duration;

/// Retention time and maximum number of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRules {
    /// Time after which an unused container is removed; zero disables this.
    pub idle_timeout: Duration,
    /// Maximum number of containers. Parked ones make room for new ones, the longest parked first. If all are in use,
    /// the limit is exceeded until one is released, as in DeerFlow.
    pub replicas: usize,
    /// Network access of commands.
    pub network: Network,
}
