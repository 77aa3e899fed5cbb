//! Parses timestamps of databases and files.

/// Parses a timestamp in a database's or ISO format. Returns milliseconds since 1970. The default time zone is UTC, as
/// in DeerFlow.
pub(crate) fn millis(text: &str) -> Option<i64> {
    let text = text.trim();
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let zoned = zoned.or_else(|| {
        // PostgreSQL shortens `+00:00` to `+00`.
        let short = text.get(text.len().checked_sub(3)?..)?;
        (short.starts_with(['+', '-']) && text.contains(':'))
            .then(|| format!("{text}:00").parse().ok())
            .flatten()
    });
    let civil = || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    let time = zoned.or_else(|| civil().map(|zoned| zoned.timestamp()))?;
    Some(time.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timestamp_format_is_parsed() {
        for text in [
            "2026-03-01 09:00:00.000000",
            "2026-03-01 09:00:00.000000+00:00",
            "2026-03-01 09:00:00+00",
            "2026-03-01T09:00:00Z",
            "2026-03-01 10:00:00+01",
        ] {
            assert_eq!(millis(text), Some(1_772_355_600_000), "{text}");
        }
        for text in ["", "yesterday", "+00", "12"] {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
