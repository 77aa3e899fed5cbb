//! Limits of sign-in attempts: five failures from one IP address or for one e-mail address cause a lockout.
//!
//! An attempt is counted before its password is checked, so that concurrent attempts are limited like consecutive ones.
//! It is no longer counted once it succeeds.

use pudu_base::digest;
use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Number of failed attempts that cause a lockout.
const MAX_FAILURES: u32 = 5;
/// How long a lockout lasts, and how long a failure is remembered.
const LOCKOUT: Duration = Duration::from_secs(300);
/// Maximum number of addresses and names remembered; those with the oldest failures are forgotten first.
const MAX_TRACKED: usize = 8192;

/// The recent attempts.
#[derive(Default)]
pub(super) struct AttemptLimits(Mutex<HashMap<AttemptKey, AttemptCount>>);

/// A kind of attempt, with its source address or the name that it concerns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum AttemptKey {
    /// From an IP address.
    From(&'static str, IpAddr),
    /// For a name, stored as a digest because it may be long.
    For(&'static str, String),
}

/// Names are not displayed.
impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(_, address) => address.fmt(f),
            Self::For(..) => f.write_str("(a name)"),
        }
    }
}

impl AttemptKey {
    /// Returns the key of an attempt for a name, which is case-insensitive.
    pub(super) fn named(kind: &'static str, name: &str) -> Self {
        Self::For(kind, digest(name.trim().to_lowercase()))
    }
}

#[derive(Clone, Copy)]
struct AttemptCount {
    failures: u32,
    until: Instant,
}

impl AttemptLimits {
    /// Counts an attempt. If one of its keys is locked, returns the remaining time instead.
    pub(super) fn begin(&self, keys: &[AttemptKey], now: Instant) -> Result<(), Duration> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let locked = keys.iter().filter_map(|key| counts.get(key)?.locked(now)).max();
        if let Some(left) = locked {
            return Err(left);
        }
        for key in keys {
            make_room(&mut counts, key, now);
            let count = counts.entry(key.clone()).or_insert(AttemptCount { failures: 0, until: now });
            if count.until <= now {
                count.failures = 0;
            }
            *count = AttemptCount { failures: count.failures + 1, until: now + LOCKOUT };
        }
        Ok(())
    }

    /// Stops counting a successful attempt. Earlier failures are kept, so that the owner of one account gets no extra
    /// attempts on others.
    pub(super) fn succeeded(&self, keys: &[AttemptKey]) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if let Some(count) = counts.get_mut(key) {
                count.failures = count.failures.saturating_sub(1);
            }
        }
    }

    /// Forgets the failures for a name, because its owner has signed in.
    pub(super) fn forget(&self, key: &AttemptKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl AttemptCount {
    fn locked(self, now: Instant) -> Option<Duration> {
        (self.failures >= MAX_FAILURES && self.until > now).then(|| self.until - now)
    }
}

fn make_room(counts: &mut HashMap<AttemptKey, AttemptCount>, key: &AttemptKey, now: Instant) {
    if counts.len() < MAX_TRACKED || counts.contains_key(key) {
        return;
    }
    counts.retain(|_, count| count.until > now);
    while counts.len() >= MAX_TRACKED {
        let oldest = counts.iter().min_by_key(|(_, count)| count.until).map(|(key, _)| key.clone());
        let Some(oldest) = oldest else { return };
        counts.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(n: u32) -> AttemptKey {
        AttemptKey::From("login", IpAddr::from(n.to_be_bytes()))
    }

    #[test]
    fn five_failures_lock_for_five_minutes_and_expire() {
        let (limits, start) = (AttemptLimits::default(), Instant::now());
        let keys = [from(1), AttemptKey::named("login", "Ada@example.org")];
        for _ in 0..MAX_FAILURES {
            assert_eq!(limits.begin(&keys, start), Ok(()));
        }
        assert_eq!(limits.begin(&keys, start), Err(LOCKOUT));
        let elsewhere = [from(2), AttemptKey::named("login", " ada@EXAMPLE.org")];
        assert!(limits.begin(&elsewhere, start).is_err(), "another address uses the same name");
        assert_eq!(limits.begin(&[from(2)], start), Ok(()));
        assert!(limits.begin(&keys, start + LOCKOUT / 2).is_err());
        assert_eq!(limits.begin(&keys, start + LOCKOUT), Ok(()));
        // Four old failures no longer count.
        let few = [from(3)];
        for _ in 1..MAX_FAILURES {
            assert_eq!(limits.begin(&few, start), Ok(()));
        }
        for _ in 0..MAX_FAILURES {
            assert_eq!(limits.begin(&few, start + LOCKOUT), Ok(()));
        }
    }

    #[test]
    fn a_success_is_not_counted_and_does_not_clear_earlier_failures() {
        let (limits, start) = (AttemptLimits::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(limits.begin(&[from(1)], start), Ok(()));
            limits.succeeded(&[from(1)]);
        }
        for _ in 0..MAX_FAILURES {
            assert_eq!(limits.begin(&[from(1)], start), Ok(()));
        }
        assert!(limits.begin(&[from(1)], start).is_err());
    }

    #[test]
    fn number_of_remembered_keys_is_limited() {
        let (limits, start) = (AttemptLimits::default(), Instant::now());
        let many = u32::try_from(MAX_TRACKED).unwrap() + 100;
        for n in 0..many {
            assert_eq!(limits.begin(&[from(n)], start + Duration::from_millis(u64::from(n))), Ok(()));
        }
        assert_eq!(limits.0.lock().unwrap().len(), MAX_TRACKED);
        assert!(limits.0.lock().unwrap().contains_key(&from(many - 1)), "the newest ones are remembered");
    }
}
