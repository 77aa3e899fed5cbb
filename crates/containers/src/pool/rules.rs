//! Rules of a pool.

use pudu_base::Network;
use std::time::Duration;

/// How long containers are kept, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRules {
    /// A container that nobody worked in for so long is taken away; never if zero.
    pub idle_timeout: Duration,
    /// So many there should be at most. Parked ones make room for others, the longest parked first; where all
    /// are in use there is one more all the same, as in DeerFlow, until one of them is given back.
    pub replicas: usize,
    /// Network access of their commands.
    pub network: Network,
}
