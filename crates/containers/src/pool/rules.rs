//! Limits of a pool: idle timeout, number of containers and network.

use pudu_base::Network;
use std::time::Duration;

/// Retention time and maximum number of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRules {
    /// How long an unused container is kept; forever if zero.
    pub idle_timeout: Duration,
    /// Maximum number of containers. Parked ones are removed to make room for new ones, beginning with the longest
    /// parked. If all are in use, the limit is exceeded until one is released, as in DeerFlow.
    pub replicas: usize,
    /// Network access of commands.
    pub network: Network,
}
