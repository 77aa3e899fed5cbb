//! Detects when a failed platform answers again, so that callers do not wait longer than necessary.
//!
//! Every call of an account reports its outcome. While calls fail, the callers that wait to try again take turns: one
//! tries every few seconds, the others wait, so that a platform which is down gets few calls however many wait for it.
//! The first call that succeeds wakes all. A platform may answer reads while it refuses writes, so that writers are
//! woken by successful writes alone.
//!
//! A caller that is woken and fails all the same has a problem of its own: [`Backoff`] slows each down with
//! its own failures, whatever else works.
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
    time::{Instant, sleep},
};

/// How long a call may take whose answer is short: a platform that is well again is noticed within this and a
/// [`PROBE_INTERVAL`].
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(6);
const _: () = assert!(pudu_net::CONNECT_TIMEOUT.as_millis() < CALL_TIMEOUT.as_millis());
/// How long a call may take that must not be made twice: given up too early it is done all the same, and done again.
pub(crate) const LONG_CALL: Duration = Duration::from_secs(15);
/// How often a platform that fails is tried.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// Nothing is tried more often than this because others succeed, once it failed a few times.
const MAX_RETRY_FLOOR: Duration = Duration::from_secs(4);
/// Number of futile tries that are attributed to an unstable platform; further ones to the call itself.
const FORGIVEN: u32 = 3;

/// Whether a platform answers an account's calls. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    failing: AtomicBool,
    recovered: Notify,
    /// Lock of the caller whose turn it is to try.
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

    /// Returns whether the platform failed and did not answer since.
    pub(crate) fn is_failing(&self) -> bool {
        self.0.failing.load(Ordering::Relaxed)
    }

    /// Records the outcome of a call; `down` returns whether its error is the platform's failure.
    pub(crate) fn note<T, E>(&self, result: &Result<T, E>, down: impl FnOnce(&E) -> bool) {
        match result {
            Err(error) if down(error) => self.failed(),
            _ => self.answered(),
        }
    }

    /// Records the outcome of a call that writes nothing: its success does not wake callers that write, its failure
    /// counts.
    pub(crate) fn note_read<T, E>(&self, result: &Result<T, E>, down: impl FnOnce(&E) -> bool) {
        if result.as_ref().is_err_and(down) {
            self.failed();
        }
    }

    /// Waits before something is tried again that failed, without the floor that [`Backoff`] has: `wait`, but no longer
    /// than until the platform answers, or until it is this one's turn to try whether it does. Returns whether the
    /// platform answered.
    async fn pause(&self, wait: Duration) -> bool {
        let recovered = self.0.recovered.notified();
        tokio::pin!(recovered);
        recovered.as_mut().enable();
        let probe = async {
            let _turn = self.0.probe.lock().await;
            sleep(PROBE_INTERVAL).await;
        };
        tokio::select! {
            biased;
            () = recovered => true,
            () = sleep(wait) => false,
            () = probe => false,
        }
    }
}

/// How often something may be tried again, by how it fared so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// When it was tried last.
    tried: Instant,
    /// How often it was tried because the platform answered, and failed.
    vain: u32,
}

impl Backoff {
    /// Nothing was tried yet.
    pub(crate) fn new() -> Self {
        Self { tried: Instant::now(), vain: 0 }
    }

    /// It is tried now.
    pub(crate) fn start_try(&mut self) {
        self.tried = Instant::now();
    }

    /// Waits as [`Recovery::pause`], but never less than a floor since the last try. The floor grows with `wait`, up to
    /// [`MAX_RETRY_FLOOR`], so that no caller waits longer for a platform that is well. It grows further for a call
    /// that fails again and again while the platform answers others.
    pub(crate) async fn pause(&mut self, recovery: &Recovery, wait: Duration) {
        let longest = MAX_RETRY_FLOOR.saturating_mul(1 << self.vain.saturating_sub(FORGIVEN).min(16));
        let floor = wait.min(longest).saturating_sub(self.tried.elapsed());
        sleep(floor).await;
        // Answers that came meanwhile count once.
        let woken = !recovery.is_failing() || recovery.pause(wait.saturating_sub(floor)).await;
        self.vain = self.vain.saturating_add(u32::from(woken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use tokio::time::timeout;

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

    /// Tries a call that always fails for two minutes, as the outbox does; returns the seconds after which each try was
    /// made.
    async fn tries(recovery: &Recovery) -> Vec<u64> {
        let (begun, mut backoff, mut tries) = (Instant::now(), Backoff::new(), Vec::new());
        for attempt in 0.. {
            tries.push(begun.elapsed().as_secs());
            backoff.start_try();
            recovery.failed();
            let wait = Duration::from_secs(2u64.saturating_pow(attempt).min(60));
            if timeout(Duration::from_secs(120) - begun.elapsed(), backoff.pause(recovery, wait))
                .await
                .is_err()
            {
                break;
            }
        }
        tries
    }

    #[tokio::test(start_paused = true)]
    async fn what_always_fails_is_tried_ever_less_often_however_well_others_fare() {
        let recovery = Recovery::default();
        let others = async {
            loop {
                sleep(Duration::from_millis(10)).await;
                recovery.answered();
            }
        };
        let tries = tokio::select! {
            tries = tries(&recovery) => tries,
            () = others => Vec::new(),
        };
        assert_eq!(tries, [0, 1, 3, 7, 11, 19, 35, 67]);
    }

    #[tokio::test(start_paused = true)]
    async fn while_nothing_answers_the_pace_falls_no_further_than_to_be_there_in_time() {
        assert_eq!(
            tries(&Recovery::default()).await.iter().take(7).collect::<Vec<_>>(),
            [&0, &1, &3, &7, &13, &19, &25]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_fail_together_do_not_wake_each_other_more_often_than_their_own_pace() {
        let recovery = Recovery::default();
        // Each can read, which answers, and cannot post.
        let each = || async {
            let (begun, mut backoff, mut count) = (Instant::now(), Backoff::new(), 0);
            while begun.elapsed() < Duration::from_secs(60) {
                backoff.start_try();
                recovery.answered();
                sleep(Duration::from_millis(1)).await;
                recovery.failed();
                let wait = Duration::from_secs(2u64.saturating_pow(count).min(60));
                backoff.pause(&recovery, wait).await;
                count += 1;
            }
            count
        };
        let counts = join_all((0..5).map(|_| each())).await;
        assert!(counts.iter().all(|count| *count <= 15), "{counts:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_not_there_when_the_platform_answered_goes_on_at_the_end_of_the_floor() {
        let recovery = Recovery::default();
        let (begun, mut backoff) = (Instant::now(), Backoff::new());
        recovery.failed();
        let other = async {
            sleep(Duration::from_secs(1)).await;
            recovery.answered();
        };
        tokio::join!(backoff.pause(&recovery, LONG), other);
        assert_eq!(begun.elapsed(), MAX_RETRY_FLOOR);
    }

    #[test]
    fn what_is_read_does_not_wake_those_who_write() {
        let recovery = Recovery::default();
        recovery.note_read(&Err::<(), _>(false), |down| *down);
        assert!(!recovery.is_failing());
        recovery.note_read(&Err::<(), _>(true), |down| *down);
        assert!(recovery.is_failing());
        recovery.note_read(&Ok::<_, bool>(()), |down| *down);
        assert!(recovery.is_failing());
        recovery.note(&Ok::<_, bool>(()), |down| *down);
        assert!(!recovery.is_failing());
    }

    #[test]
    fn only_a_failure_of_the_platform_counts_as_one() {
        let recovery = Recovery::default();
        for (result, expected) in [(Err(true), true), (Err(false), false), (Err(true), true), (Ok(()), false)]
        {
            recovery.note(&result, |down| *down);
            assert_eq!(recovery.is_failing(), expected, "{result:?}");
        }
    }
}
