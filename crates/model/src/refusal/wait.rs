//! Retry delays in error messages, such as "Please try again in 5.289s" or "retry in 1m30s". Some providers send no
//! header, and an error within a stream has none.

use std::time::Duration;

/// Phrases before a delay, in lower case.
const SIGNS: [&str; 4] = ["try again in ", "retry in ", "retry after ", "available in "];

/// Returns the delay in an error message; `said` is in lower case.
pub(super) fn named_wait(said: &str) -> Option<Duration> {
    let after = SIGNS.iter().find_map(|sign| Some(said.split_once(sign)?.1))?;
    let mut rest = after.trim_start();
    let mut wait: Option<Duration> = None;
    while let Some((part, more)) = first_part(rest) {
        wait = Some(wait.unwrap_or_default().saturating_add(part));
        rest = more;
    }
    wait
}

/// Parses a number and its unit. Returns the delay and the remaining text.
fn first_part(text: &str) -> Option<(Duration, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, after) = text.split_at_checked(digits)?;
    let number: f64 = number.trim_end_matches('.').parse().ok()?;
    let after = after.trim_start();
    let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
    let (unit, rest) = after.split_at_checked(letters)?;
    let seconds = match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Some((Duration::try_from_secs_f64(number * seconds).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_providers_delay_is_parsed() {
        for (said, millis) in [
            ("limit 15000, used 11972. please try again in 5.289s. visit https://", Some(5_289)),
            ("please retry in 12.5s.", Some(12_500)),
            ("try again in 6m0s.", Some(360_000)),
            ("please try again in 1m2.5s", Some(62_500)),
            ("try again in 345ms", Some(345)),
            ("please retry after 20 seconds.", Some(20_000)),
            ("please try again in 2 hours", Some(7_200_000)),
            ("please try again in a moment", None),
            ("please try again later", None),
            ("try again in 7 apples", None),
            ("try again in 1e9999999s", None),
            ("", None),
        ] {
            assert_eq!(named_wait(said), millis.map(Duration::from_millis), "{said}");
        }
    }
}
