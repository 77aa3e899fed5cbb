//! Times in the store's units.

pub use pudu_kit::clock::now;

/// One day, in milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Returns the day of a time, in days since 1970 in UTC.
pub(crate) fn day(time: i64) -> i64 {
    time.div_euclid(DAY)
}

/// Returns the time at which a day begins, in milliseconds since 1970.
pub(crate) fn start(day: i64) -> i64 {
    day.saturating_mul(DAY)
}
