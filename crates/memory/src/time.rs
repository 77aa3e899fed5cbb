//! Times in DeerFlow's format: ISO 8601 with a `Z`.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// One day, in milliseconds.
const DAY_MS: f64 = 86_400_000.0;

/// Length of a date in ISO 8601, in characters.
const DATE_CHARS: usize = 10;

/// A point in time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactTime(i64);

impl FactTime {
    /// Creates a time from milliseconds since 1970.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Returns the time in milliseconds since 1970.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Parses ISO 8601. A time without a zone is in UTC, and a date without a time is midnight.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let civil =
            || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
        let time = text.parse::<Timestamp>().ok().or_else(civil)?;
        Some(Self(time.as_microsecond()))
    }

    /// Returns its date, or `None` if it was never set.
    #[must_use]
    pub fn date(self) -> Option<String> {
        (self.0 != 0).then(|| self.to_string().chars().take(DATE_CHARS).collect())
    }

    /// Returns the days from this time to a later one; 0 if it is not later.
    #[must_use]
    pub fn days_until(self, later: Self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "days need no such precision")]
        let millis = later.millis().saturating_sub(self.millis()).max(0) as f64;
        millis / DAY_MS
    }
}

impl std::fmt::Display for FactTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Timestamp::from_microsecond(self.0).unwrap_or_default().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_format_is_read_and_one_is_written() {
        for (text, expect) in [
            ("2026-07-19T00:00:00Z", "2026-07-19T00:00:00Z"),
            ("2026-07-19T00:00:00.123456Z", "2026-07-19T00:00:00.123456Z"),
            ("2026-07-19T02:00:00+02:00", "2026-07-19T00:00:00Z"),
            ("2026-07-19 00:00:00", "2026-07-19T00:00:00Z"),
            ("2026-07-19", "2026-07-19T00:00:00Z"),
        ] {
            assert_eq!(FactTime::parse(text).unwrap().to_string(), expect, "{text}");
        }
        assert_eq!(FactTime::parse("yesterday"), None);
        assert_eq!(FactTime::from_millis(1_500).to_string(), "1970-01-01T00:00:01.5Z");
        assert_eq!(FactTime::from_millis(i64::MAX).to_string(), "1970-01-01T00:00:00Z", "out of range");
    }
}
