//! How often an app may call, all its chats together.
//!
//! Each unfinished view takes a place and waits for it, in order of arrival. A finished view counts and never waits.
//! When the platform says that the app calls too often, no place is given during the wait that it asks for.

use crate::allowance::{Allowance, Rate};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Rate limit: a burst of calls at once, and one more after each interval.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    allowance: Mutex<Allowance>,
}

impl Bucket {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self { rate: Rate { burst, interval }, allowance: Mutex::new(Allowance::new(Instant::now())) }
    }

    /// Waits for a place; the next call that is spent has it.
    ///
    /// # Cancel safety
    /// A caller that is dropped while it waits leaves its place to the next call.
    pub(crate) async fn ready(&self) {
        let at = self.with(|allowance, now| allowance.place(self.rate, now));
        sleep_until(at).await;
    }

    /// Counts a call that is made now.
    pub(crate) fn spend(&self) {
        self.with(|allowance, now| allowance.spend(self.rate, now));
    }

    /// Gives no place during `wait`.
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

    /// Returns the times at which `count` callers get their places, in milliseconds.
    async fn places(bucket: &Bucket, count: usize) -> Vec<u128> {
        let begun = Instant::now();
        let each = (0..count).map(async |_| {
            bucket.ready().await;
            begun.elapsed().as_millis()
        });
        join_all(each).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_the_rest_waits_in_a_row() {
        let bucket = Bucket::new(3, Duration::from_millis(60));
        assert_eq!(places(&bucket, 6).await, [0, 0, 0, 60, 120, 180]);
        (0..6).for_each(|_| bucket.spend());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(places(&bucket, 4).await, [0, 0, 0, 60], "it fills up again, and not beyond");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_finished_counts_and_is_not_owed_for_ever() {
        let bucket = Bucket::new(2, Duration::from_millis(100));
        (0..50).for_each(|_| bucket.spend());
        assert_eq!(places(&bucket, 2).await, [100, 200]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_gets_a_place_while_the_platform_says_so() {
        let bucket = Bucket::new(2, Duration::from_millis(100));
        bucket.hold(Duration::from_secs(7));
        assert_eq!(places(&bucket, 1).await, [7000]);
    }
}
