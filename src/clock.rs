//! The wall clock, in the one form that is stored and sent.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Writes such a time as people and other programs read it: `2026-11-20T09:00:00.123Z`.
pub(crate) fn text(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| millis.to_string(), |time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(super::text(1_795_179_221_004), "2026-11-20T12:53:41.004Z");
        assert_eq!(super::text(i64::MAX), i64::MAX.to_string());
    }
}
