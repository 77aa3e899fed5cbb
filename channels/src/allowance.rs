//! Rate limit for calls (GCRA): an initial burst, then one call per interval.

use std::time::Duration;
use tokio::time::Instant;

/// State of one rate limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// GCRA's theoretical arrival time: when all calls so far are paid back.
    paid: Instant,
    not_before: Instant,
    /// Number of reserved slots that are not used yet.
    reserved: u32,
}

/// Size of a burst of calls, and the interval between further calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) burst: u32,
    pub(crate) interval: Duration,
}

impl Allowance {
    pub(crate) fn new(now: Instant) -> Self {
        Self { paid: now, not_before: now, reserved: 0 }
    }

    /// Reserves the next slot and returns its time. The next [`Self::spend`] uses it.
    pub(crate) fn reserve(&mut self, Rate { burst, interval }: Rate, now: Instant) -> Instant {
        let first = self.not_before.max(now);
        let ahead = interval * burst.saturating_sub(1);
        let at = self.paid.checked_sub(ahead).unwrap_or(first).max(first);
        self.paid = self.paid.max(first) + interval;
        self.reserved = self.reserved.saturating_add(1);
        at
    }

    /// Uses a reserved slot. Without one, takes a slot on credit instead of waiting; the debt never exceeds one burst.
    pub(crate) fn spend(&mut self, Rate { burst, interval }: Rate, now: Instant) {
        match self.reserved.checked_sub(1) {
            Some(left) => self.reserved = left,
            None => {
                let cap = self.paid.max(now + interval * burst);
                self.paid = (self.paid.max(now) + interval).min(cap);
            }
        }
    }

    /// Grants no slot during `wait`.
    pub(crate) fn hold(&mut self, wait: Duration, now: Instant) {
        self.not_before = self.not_before.max(now + wait);
    }

    /// Returns the earliest time of the next slot.
    pub(crate) fn not_before(&self) -> Instant {
        self.not_before
    }

    /// Returns the time at which all calls are paid back and no hold is in force.
    pub(crate) fn idle_from(&self) -> Instant {
        self.not_before.max(self.paid)
    }
}
