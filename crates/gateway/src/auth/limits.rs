//! Attempts to sign in: five that fail, from one address or for one e-mail address, and the sixth waits.
//!
//! An attempt counts before its password is looked at, so that many at once get no more tries than one after the other, and
//! counts no more once it succeeded.

use pudu_client::base::digest;
use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Number of failed attempts that lock further ones out.
const MAX_FAILURES: u32 = 5;
/// Duration of a lock, and time for which a failure is remembered.
const LOCKOUT: Duration = Duration::from_secs(300);
/// Maximum number of addresses and names remembered; the ones that failed longest ago are forgotten first.
const MAX_TRACKED: usize = 8192;

/// The recent attempts.
#[derive(Default)]
pub(super) struct AttemptLimits(Mutex<HashMap<AttemptKey, AttemptCount>>);

/// A kind of attempt, with the address that it comes from or the name that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum AttemptKey {
    /// By an address.
    From(&'static str, IpAddr),
    /// For a name, which may be long: its digest.
    For(&'static str, String),
}

/// Names are not shown.
impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(_, address) => address.fmt(f),
            Self::For(..) => f.write_str("(a name)"),
        }
    }
}

impl AttemptKey {
    /// An attempt for a name, whose case does not matter.
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
    /// Counts an attempt, unless one of its keys is locked: then returns for how long.
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

    /// Takes back an attempt that succeeded. Earlier failures stay, so that the owner of one account gets no more
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
        assert!(limits.begin(&elsewhere, start).is_err(), "another address tries the same name");
        assert_eq!(limits.begin(&[from(2)], start), Ok(()));
        assert!(limits.begin(&keys, start + LOCKOUT / 2).is_err());
        assert_eq!(limits.begin(&keys, start + LOCKOUT), Ok(()));
        // Four failures of long ago are none.
        let few = [from(3)];
        for _ in 1..MAX_FAILURES {
            assert_eq!(limits.begin(&few, start), Ok(()));
        }
        for _ in 0..MAX_FAILURES {
            assert_eq!(limits.begin(&few, start + LOCKOUT), Ok(()));
        }
    }

    #[test]
    fn a_success_counts_nothing_and_forgives_an_address_nothing() {
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
    fn only_so_many_are_remembered() {
        let (limits, start) = (AttemptLimits::default(), Instant::now());
        let many = u32::try_from(MAX_TRACKED).unwrap() + 100;
        for n in 0..many {
            assert_eq!(limits.begin(&[from(n)], start + Duration::from_millis(u64::from(n))), Ok(()));
        }
        assert_eq!(limits.0.lock().unwrap().len(), MAX_TRACKED);
        assert!(limits.0.lock().unwrap().contains_key(&from(many - 1)), "the newest ones are");
    }
}
