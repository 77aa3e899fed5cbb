//! Allowance of calls: a burst at once, and one more after each interval (GCRA).

use std::time::Duration;
use tokio::time::Instant;

/// How much of an allowance is spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// When the interval is over for all that was spent so far (GCRA's theoretical arrival time).
    paid: Instant,
    not_before: Instant,
    /// Places that were given and not used yet.
    given: u32,
}

/// How many at once, and how long the next one waits after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) burst: u32,
    pub(crate) interval: Duration,
}

impl Allowance {
    pub(crate) fn new(now: Instant) -> Self {
        Self { paid: now, not_before: now, given: 0 }
    }

    /// Reserves the next place and returns its time. The next [`Self::spend`] uses it.
    pub(crate) fn place(&mut self, Rate { burst, interval }: Rate, now: Instant) -> Instant {
        let first = self.not_before.max(now);
        let ahead = interval * burst.saturating_sub(1);
        let at = self.paid.checked_sub(ahead).unwrap_or(first).max(first);
        self.paid = self.paid.max(first) + interval;
        self.given = self.given.saturating_add(1);
        at
    }

    /// Uses a place that was given; else pays for one without waiting. That is not owed for longer than one burst.
    pub(crate) fn spend(&mut self, Rate { burst, interval }: Rate, now: Instant) {
        match self.given.checked_sub(1) {
            Some(left) => self.given = left,
            None => {
                let most = self.paid.max(now + interval * burst);
                self.paid = (self.paid.max(now) + interval).min(most);
            }
        }
    }

    /// Gives no place during `wait`.
    pub(crate) fn hold(&mut self, wait: Duration, now: Instant) {
        self.not_before = self.not_before.max(now + wait);
    }

    /// Returns from when on places are given.
    pub(crate) fn not_before(&self) -> Instant {
        self.not_before
    }

    /// Returns when all that was spent is paid, and no hold is left.
    pub(crate) fn idle_from(&self) -> Instant {
        self.not_before.max(self.paid)
    }
}
