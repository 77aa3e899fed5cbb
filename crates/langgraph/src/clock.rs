//! Time format of the API.

pub(super) use pudu_store::now;

/// Formats a time, in milliseconds since 1970, as LangGraph's Python clients do: `2026-11-20T09:00:00.123000+00:00`.
#[must_use]
pub fn iso(millis: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(millis);
    time.map_or_else(|_| millis.to_string(), |time| format!("{time:.6}").replace('Z', "+00:00"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_formatted_in_utc() {
        assert_eq!(super::iso(1_795_179_221_004), "2026-11-20T12:53:41.004000+00:00");
        assert_eq!(super::iso(i64::MAX), i64::MAX.to_string());
    }
}
