//! Faults by a seed: of the network, the platform, the model and the disk.

use std::{collections::BTreeMap, time::Duration};

/// Fault of one exchange over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No connection comes about; no effect.
    Unconnected,
    /// The request is lost; no effect, and no response.
    Lost,
    /// 429 with a number of seconds to wait; no effect.
    TooMany(u64),
    /// 500; no effect.
    Internal,
    /// The response is lost after the effect.
    Unanswered,
    /// The response breaks off after the effect.
    Cut,
}

/// The faults of a simulation.
#[derive(Default)]
pub struct Faults {
    /// Number of injected faults, by kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// Faults per thousand exchanges; 0 in a calm simulation.
    pub rate: u32,
    /// End of the current outage of the store.
    outage: Duration,
}

/// Plan of one exchange over the network.
pub struct Plan {
    pub fault: Option<Fault>,
    /// Delay of the request.
    pub there: Duration,
    /// Delay of the response.
    pub back: Duration,
}

impl Faults {
    pub fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// Plans an exchange.
    pub fn plan(&mut self, random: &mut fastrand::Rng) -> Plan {
        let fault = (random.u32(0..1000) < self.rate).then(|| match random.u32(0..6) {
            0 => Fault::Unconnected,
            1 => Fault::Lost,
            2 => Fault::TooMany(random.u64(1..4)),
            3 => Fault::Internal,
            4 => Fault::Unanswered,
            _ => Fault::Cut,
        });
        if let Some(fault) = fault {
            self.count(match fault {
                Fault::Unconnected => "no connection",
                Fault::Lost => "lost request",
                Fault::TooMany(_) => "429",
                Fault::Internal => "500",
                Fault::Unanswered => "lost response",
                Fault::Cut => "cut response",
            });
        }
        Plan { fault, there: self.delay(random), back: self.delay(random) }
    }

    fn delay(&mut self, random: &mut fastrand::Rng) -> Duration {
        let millis = match random.u32(0..100) {
            0..50 => 0,
            50..98 => random.u64(1..40),
            _ if self.rate == 0 => 40,
            _ => {
                self.count("delay");
                random.u64(200..4000)
            }
        };
        Duration::from_millis(millis)
    }

    /// Decides about a step of the store.
    pub fn of_store(&mut self, name: &str, at: Duration, random: &mut fastrand::Rng) -> Result<(), String> {
        if !["begin", "commit", "read"].contains(&name) {
            return Ok(());
        }
        if self.rate > 0 && at >= self.outage && random.u32(0..10_000) < self.rate {
            self.count("store outage");
            self.outage = at + Duration::from_millis(random.u64(1..9000));
        }
        if at < self.outage && self.rate > 0 { Err("the disk is away".to_owned()) } else { Ok(()) }
    }
}
