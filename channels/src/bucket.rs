//! Rate limit for an app's calls, shared by all its chats.
//!
//! An update of an unfinished reply reserves a slot and waits for it, in order of arrival. A finished reply takes a
//! slot without waiting. When the platform reports too many calls, no slot is granted until the requested wait is over.

use crate::allowance::{Allowance, Rate};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Rate limit: an initial burst, then one call per interval.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    allowance: Mutex<Allowance>,
}

impl Bucket {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self { rate: Rate { burst, interval }, allowance: Mutex::new(Allowance::new(Instant::now())) }
    }

    /// Reserves a slot and waits for it. The next [`Self::spend`] uses it.
    ///
    /// # Cancel safety
    /// If the future is dropped while it waits, the next call uses its slot.
    pub(crate) async fn ready(&self) {
        let at = self.with(|allowance, now| allowance.reserve(self.rate, now));
        sleep_until(at).await;
    }

    /// Counts a call made now.
    pub(crate) fn spend(&self) {
        self.with(|allowance, now| allowance.spend(self.rate, now));
    }

    /// Grants no slot during `wait`.
    pub(crate) fn hold(&self, wait: Duration) {
        self.with(|allowance, now| allowance.hold(wait, now));
    }

    fn with<T>(&self, work: impl FnOnce(&mut Allowance, Instant) -> T) -> T {
        work(&mut self.allowance.lock().unwrap_or_else(PoisonError::into_inner), Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;

    /// Returns the times at which `count` callers get their slots, in milliseconds.
    async fn places(bucket: &Bucket, count: usize) -> Vec<u128> {
        let start = Instant::now();
        let each = (0..count).map(async |_| {
            bucket.ready().await;
            start.elapsed().as_millis()
        });
        join_all(each).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_later_calls_are_spaced_out() {
        let bucket = Bucket::new(3, Duration::from_millis(60));
        assert_eq!(places(&bucket, 6).await, [0, 0, 0, 60, 120, 180]);
        (0..6).for_each(|_| bucket.spend());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(places(&bucket, 4).await, [0, 0, 0, 60], "it refills to one burst at most");
    }

    #[tokio::test(start_paused = true)]
    async fn finished_replies_count_but_their_debt_is_bounded() {
        let bucket = Bucket::new(2, Duration::from_millis(100));
        (0..50).for_each(|_| bucket.spend());
        assert_eq!(places(&bucket, 2).await, [100, 200]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_slot_is_granted_during_a_requested_wait() {
        let bucket = Bucket::new(2, Duration::from_millis(100));
        bucket.hold(Duration::from_secs(7));
        assert_eq!(places(&bucket, 1).await, [7000]);
    }
}
