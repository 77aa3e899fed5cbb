//! The time, as the store keeps it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Returns the day of a time, in days since 1970 in UTC.
pub(crate) fn day(time: i64) -> i64 {
    time.div_euclid(DAY)
}

/// Returns the time at which a day begins.
pub(crate) fn start(day: i64) -> i64 {
    day.saturating_mul(DAY)
}

/// Returns the time, in milliseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
