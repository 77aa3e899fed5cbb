//! How often an app may call, all its chats together.
//!
//! Unfinished views take a place each and wait for it, in the order in which they came. What is finished counts and
//! never waits. When the platform says that the app calls too often, no place is given for as long as it says.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// So many calls at once, and one more after each interval.
#[derive(Debug)]
pub(crate) struct Bucket {
    burst: u32,
    interval: Duration,
    fill: Mutex<Fill>,
}

#[derive(Debug)]
struct Fill {
    /// When the interval is over for all that was spent so far (GCRA's theoretical arrival time).
    paid: Instant,
    not_before: Instant,
    /// Places that were given and whose calls were not made yet.
    given: u32,
}

impl Bucket {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        let now = Instant::now();
        Self { burst, interval, fill: Mutex::new(Fill { paid: now, not_before: now, given: 0 }) }
    }

    /// Waits for a place; the next call that is spent has it.
    ///
    /// # Cancel safety
    /// A caller that is dropped while it waits has taken its place: one call more than was made is counted.
    pub(crate) async fn ready(&self) {
        let at = self.with(|fill, now| {
            let ahead = self.interval * self.burst.saturating_sub(1);
            let at = fill.paid.checked_sub(ahead).unwrap_or(now).max(fill.not_before).max(now);
            fill.paid = fill.paid.max(now) + self.interval;
            fill.given += 1;
            at
        });
        sleep_until(at).await;
    }

    /// Counts a call that is made now.
    pub(crate) fn spend(&self) {
        self.with(|fill, now| match fill.given.checked_sub(1) {
            Some(left) => fill.given = left,
            // What never waits is not owed for longer than one burst.
            None => {
                let most = fill.paid.max(now + self.interval * self.burst);
                fill.paid = (fill.paid.max(now) + self.interval).min(most);
            }
        });
    }

    /// Gives no place for so long.
    pub(crate) fn hold(&self, wait: Duration) {
        self.with(|fill, now| fill.not_before = fill.not_before.max(now + wait));
    }

    fn with<T>(&self, work: impl FnOnce(&mut Fill, Instant) -> T) -> T {
        work(&mut self.fill.lock().unwrap_or_else(PoisonError::into_inner), Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;

    /// When each of so many gets its place, in milliseconds.
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
