//! Tells when a platform that failed answers again, so that nobody waits longer than it does.
//!
//! Every call of an account says how it went. While calls fail, those who wait to try again take turns: one of them
//! tries every few seconds, the others wait, so that a platform which is down is asked seldom however much waits
//! for it. The first call that succeeds wakes all.
//!
//! Deliberately absent: waits that a platform asks for (see [`crate::pace`]). They are kept to whatever else works.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Mutex, Notify},
    time::sleep,
};

/// How long a call may take whose answer is short: a platform that is well again is noticed within this and a
/// [`PROBE_INTERVAL`].
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(6);
/// How often a platform that fails is tried.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// Whether a platform answers an account's calls. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    failing: AtomicBool,
    recovered: Notify,
    /// Whose turn it is to try.
    probe: Mutex<()>,
}

impl Recovery {
    /// The platform answered, whatever it said of the call.
    pub(crate) fn answered(&self) {
        if self.0.failing.swap(false, Ordering::Relaxed) {
            self.0.recovered.notify_waiters();
        }
    }

    /// The platform did not answer, or said that it fails.
    pub(crate) fn failed(&self) {
        self.0.failing.store(true, Ordering::Relaxed);
    }

    /// Notes how a call went; `down` tells whether its error is the platform's failure.
    pub(crate) fn note<T, E>(&self, result: &Result<T, E>, down: impl FnOnce(&E) -> bool) {
        match result {
            Err(error) if down(error) => self.failed(),
            _ => self.answered(),
        }
    }

    /// Waits before something is looked at again: `wait`, unless the platform fails, and then as [`Self::pause`].
    pub(crate) async fn pause_if_failing(&self, wait: Duration) {
        if self.0.failing.load(Ordering::Relaxed) {
            self.pause(wait).await;
        } else {
            sleep(wait).await;
        }
    }

    /// Waits before something is tried again that failed: `wait`, but no longer than until the platform answers,
    /// or until it is this one's turn to try whether it does.
    pub(crate) async fn pause(&self, wait: Duration) {
        let recovered = self.0.recovered.notified();
        tokio::pin!(recovered);
        recovered.as_mut().enable();
        let probe = async {
            let _turn = self.0.probe.lock().await;
            sleep(PROBE_INTERVAL).await;
        };
        tokio::select! {
            () = recovered => {}
            () = sleep(wait) => {}
            () = probe => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use tokio::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_on_as_soon_as_any_call_succeeds() {
        let recovery = Recovery::default();
        recovery.failed();
        let begun = Instant::now();
        let waits = join_all((0..5).map(|_| recovery.pause(LONG)));
        let other = async {
            sleep(Duration::from_millis(700)).await;
            recovery.answered();
        };
        tokio::join!(waits, other);
        assert_eq!(begun.elapsed(), Duration::from_millis(700));
    }

    #[tokio::test(start_paused = true)]
    async fn while_it_fails_one_tries_at_a_time_however_many_wait() {
        let recovery = Recovery::default();
        let begun = Instant::now();
        let tries = (0..4).map(|_| async {
            recovery.pause(LONG).await;
            recovery.failed();
            begun.elapsed().as_secs()
        });
        assert_eq!(join_all(tries).await, [2, 4, 6, 8]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_wait_is_no_longer_than_it_is() {
        let recovery = Recovery::default();
        recovery.failed();
        let begun = Instant::now();
        recovery.pause(Duration::from_millis(10)).await;
        assert_eq!(begun.elapsed(), Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn where_nothing_fails_a_wait_is_as_long_as_it_is() {
        let recovery = Recovery::default();
        let begun = Instant::now();
        recovery.pause_if_failing(LONG).await;
        assert_eq!(begun.elapsed(), LONG);
        recovery.failed();
        recovery.pause_if_failing(LONG).await;
        assert_eq!(begun.elapsed(), LONG + PROBE_INTERVAL);
    }

    #[test]
    fn only_a_failure_of_the_platform_counts_as_one() {
        let recovery = Recovery::default();
        let failing = |recovery: &Recovery| recovery.0.failing.load(Ordering::Relaxed);
        for (result, expected) in [(Err(true), true), (Err(false), false), (Err(true), true), (Ok(()), false)]
        {
            recovery.note(&result, |down| *down);
            assert_eq!(failing(&recovery), expected, "{result:?}");
        }
    }
}
