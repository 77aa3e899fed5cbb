//! Detects when a failed platform answers again, so that callers wait no longer than necessary.
//!
//! Every call of a bot reports its outcome. While calls fail, waiting callers take turns: one caller tries every few
//! seconds while the others wait, so a platform that is down gets few calls regardless of the number of callers. The
//! first successful call wakes all. A platform may answer reads while it refuses writes, so writers are woken only by
//! successful writes.
//!
//! A caller that is woken and still fails has a problem of its own: [`Backoff`] slows down each caller by its own
//! failures, regardless of other calls.
//!
//! Deliberately absent: waits that a platform requests (see [`crate::pace`]). They always apply.

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

/// Timeout of a call with a short response. A recovered platform is noticed within this time plus [`PROBE_INTERVAL`].
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(6);
const _: () = assert!(pudu_net::CONNECT_TIMEOUT.as_millis() < CALL_TIMEOUT.as_millis());
/// Timeout of a call that must not be made twice. If it timed out too early, it could succeed and still be repeated.
pub(crate) const LONG_CALL: Duration = Duration::from_secs(15);
/// Interval between attempts at a failing platform.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// Upper bound of the minimum interval between a caller's attempts, for its first few failures.
const MAX_RETRY_FLOOR: Duration = Duration::from_secs(4);
/// Number of failed attempts attributed to an unstable platform. Further ones are attributed to the call itself.
const FORGIVEN: u32 = 3;

/// Whether a platform answers a bot's calls. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    failing: AtomicBool,
    recovered: Notify,
    /// Held by the caller whose turn it is to try.
    probe: Mutex<()>,
}

impl Recovery {
    /// Records that the platform answered, even with an error.
    pub(crate) fn answered(&self) {
        if self.0.failing.swap(false, Ordering::Relaxed) {
            self.0.recovered.notify_waiters();
        }
    }

    /// Records that the platform did not answer, or reported an outage.
    pub(crate) fn failed(&self) {
        self.0.failing.store(true, Ordering::Relaxed);
    }

    /// Returns whether the platform failed and has not answered since.
    pub(crate) fn is_failing(&self) -> bool {
        self.0.failing.load(Ordering::Relaxed)
    }

    /// Records the outcome of a call. `down` returns whether an error is an outage of the platform.
    pub(crate) fn note<T, E>(&self, result: &Result<T, E>, down: impl FnOnce(&E) -> bool) {
        match result {
            Err(error) if down(error) => self.failed(),
            _ => self.answered(),
        }
    }

    /// Records the outcome of a read. A failure counts, but a success does not wake callers that write.
    pub(crate) fn note_read<T, E>(&self, result: &Result<T, E>, down: impl FnOnce(&E) -> bool) {
        if result.as_ref().is_err_and(down) {
            self.failed();
        }
    }

    /// Waits before another attempt, without the minimum of [`Backoff`]: for `wait`, until the platform answers, or
    /// until it is this caller's turn to try, whichever comes first. Returns whether the platform answered.
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

/// Delays between the attempts of one caller, derived from its failures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// Time of the last attempt.
    tried: Instant,
    /// Number of waits that ended because the platform answered.
    woken_attempts: u32,
}

impl Backoff {
    /// Creates the state before the first attempt.
    pub(crate) fn new() -> Self {
        Self { tried: Instant::now(), woken_attempts: 0 }
    }

    /// Records that an attempt starts now.
    pub(crate) fn start_try(&mut self) {
        self.tried = Instant::now();
    }

    /// Waits as [`Recovery::pause`] does, but at least a minimum time since the last attempt. The minimum grows with
    /// `wait`, up to [`MAX_RETRY_FLOOR`], so that no caller waits longer for a recovered platform. It grows further for
    /// a call that fails repeatedly while the platform answers others.
    pub(crate) async fn pause(&mut self, recovery: &Recovery, wait: Duration) {
        let longest =
            MAX_RETRY_FLOOR.saturating_mul(1 << self.woken_attempts.saturating_sub(FORGIVEN).min(16));
        let floor = wait.min(longest).saturating_sub(self.tried.elapsed());
        sleep(floor).await;
        // Answers during the sleep count once.
        let woken = !recovery.is_failing() || recovery.pause(wait.saturating_sub(floor)).await;
        self.woken_attempts = self.woken_attempts.saturating_add(u32::from(woken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use tokio::time::timeout;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn waiting_callers_resume_as_soon_as_any_call_succeeds() {
        let recovery = Recovery::default();
        recovery.failed();
        let start = Instant::now();
        let waits = join_all((0..5).map(|_| recovery.pause(LONG)));
        let other = async {
            sleep(Duration::from_millis(700)).await;
            recovery.answered();
        };
        tokio::join!(waits, other);
        assert_eq!(start.elapsed(), Duration::from_millis(700));
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_at_a_time_probes_a_failing_platform() {
        let recovery = Recovery::default();
        let start = Instant::now();
        let tries = (0..4).map(|_| async {
            recovery.pause(LONG).await;
            recovery.failed();
            start.elapsed().as_secs()
        });
        assert_eq!(join_all(tries).await, [2, 4, 6, 8]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_wait_is_not_extended() {
        let recovery = Recovery::default();
        recovery.failed();
        let start = Instant::now();
        recovery.pause(Duration::from_millis(10)).await;
        assert_eq!(start.elapsed(), Duration::from_millis(10));
    }

    /// Retries a call that always fails for two minutes, as the outbox does. Returns the time of each attempt, in
    /// seconds.
    async fn tries(recovery: &Recovery) -> Vec<u64> {
        let (start, mut backoff, mut tries) = (Instant::now(), Backoff::new(), Vec::new());
        for attempt in 0.. {
            tries.push(start.elapsed().as_secs());
            backoff.start_try();
            recovery.failed();
            let wait = Duration::from_secs(2u64.saturating_pow(attempt).min(60));
            if timeout(Duration::from_secs(120) - start.elapsed(), backoff.pause(recovery, wait))
                .await
                .is_err()
            {
                break;
            }
        }
        tries
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_always_fails_is_retried_ever_less_often() {
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
    async fn retries_stay_frequent_while_nothing_answers() {
        assert_eq!(
            tries(&Recovery::default()).await.iter().take(7).collect::<Vec<_>>(),
            [&0, &1, &3, &7, &13, &19, &25]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_fail_together_keep_their_own_pace() {
        let recovery = Recovery::default();
        // Each attempt can read but not write.
        let each = || async {
            let (start, mut backoff, mut count) = (Instant::now(), Backoff::new(), 0);
            while start.elapsed() < Duration::from_secs(60) {
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
    async fn a_caller_that_missed_the_recovery_resumes_at_the_end_of_the_floor() {
        let recovery = Recovery::default();
        let (start, mut backoff) = (Instant::now(), Backoff::new());
        recovery.failed();
        let other = async {
            sleep(Duration::from_secs(1)).await;
            recovery.answered();
        };
        tokio::join!(backoff.pause(&recovery, LONG), other);
        assert_eq!(start.elapsed(), MAX_RETRY_FLOOR);
    }

    #[test]
    fn reads_do_not_wake_writers() {
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
    fn only_platform_failures_count_as_outages() {
        let recovery = Recovery::default();
        for (result, expected) in [(Err(true), true), (Err(false), false), (Err(true), true), (Ok(()), false)]
        {
            recovery.note(&result, |down| *down);
            assert_eq!(recovery.is_failing(), expected, "{result:?}");
        }
    }
}
