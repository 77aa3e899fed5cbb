//! The timeout to connect, and retry delays requested by servers.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// Timeout to connect, shorter than the timeout of any call: a call that failed to connect had no effect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum retry delay that is accepted from a server.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(4 * 60 * 60);

/// Delays from this value on, in seconds, are timestamps since 1970 that some servers send instead.
const TIMESTAMP: f64 = 1e9;

/// Parses the requested retry delay: `retry-after-ms`, or `Retry-After` in seconds, as a date or as a timestamp.
#[must_use]
pub fn after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    millis(headers).or_else(|| seconds_or_date(headers, now)).map(|wait| wait.min(MAX_RETRY_DELAY))
}

fn millis(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("retry-after-ms")?.to_str().ok()?;
    positive(text).and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok())
}

fn seconds_or_date(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Some(seconds) = positive(text) {
        let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let is_timestamp = (TIMESTAMP..=since_1970 + MAX_RETRY_DELAY.as_secs_f64()).contains(&seconds);
        let seconds = if is_timestamp { (seconds - since_1970).max(0.0) } else { seconds };
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(MAX_RETRY_DELAY));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

fn positive(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_header_is_parsed() {
        let now = httpdate::parse_http_date("Fri, 20 Nov 2026 08:00:00 GMT").unwrap();
        let check = |name: &'static str, value: &str, expect: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(after(&headers, now), expect.map(Duration::from_millis), "{name}: {value}");
        };
        check("retry-after", "3", Some(3_000));
        check("retry-after", " 0.25 ", Some(250));
        check("retry-after", "Fri, 20 Nov 2026 08:00:30 GMT", Some(30_000));
        check("retry-after", "Fri, 20 Nov 2026 07:00:00 GMT", Some(0));
        check("retry-after", "1795161630", Some(30_000));
        check("retry-after", "1795161000", Some(0));
        check("retry-after", "99999999", Some(4 * 60 * 60 * 1000));
        check("retry-after", "1e300", Some(4 * 60 * 60 * 1000));
        check("retry-after", "-3", None);
        check("retry-after", "NaN", None);
        check("retry-after", "soon", None);
        check("retry-after-ms", "1500", Some(1_500));
        check("x-other", "1", None);
    }
}
