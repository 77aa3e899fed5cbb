//! Numbers with and without units: sizes, counts of tokens, times and time zones, in the forms that people write.
//!
//! All units are parsed here. A number without a unit has the key's default unit.

use super::raw::NodeValue;
use jiff::tz::{Offset, TimeZone};
use std::str::FromStr;

/// The default unit of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberUnit {
    /// No unit is allowed.
    Plain,
    Bytes,
    Tokens,
    Milliseconds,
    Seconds,
    Minutes,
    Days,
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Units of time, in seconds. `M` is omitted, because it may be minutes or months.
const TIMES: &[(&[&str], f64)] = &[
    (&["ms"], 0.001),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], MINUTE),
    (&["h", "hr", "hrs", "hour", "hours"], HOUR),
    (&["d", "day", "days"], DAY),
    (&["w", "week", "weeks"], 7.0 * DAY),
    (&["y", "year", "years"], 365.0 * DAY),
];

/// Units of size, in bytes. SI units are decimal, IEC units are binary.
const SIZES: &[(&[&str], f64)] = &[
    (&["b", "byte", "bytes"], 1.0),
    (&["k", "kb"], 1e3),
    (&["m", "mb"], 1e6),
    (&["g", "gb"], 1e9),
    (&["t", "tb"], 1e12),
    (&["ki", "kib"], 1_024.0),
    (&["mi", "mib"], 1_048_576.0),
    (&["gi", "gib"], 1_073_741_824.0),
    (&["ti", "tib"], 1_099_511_627_776.0),
];

const COUNTS: &[(&[&str], f64)] = &[(&["k"], 1e3), (&["m"], 1e6)];

impl NumberUnit {
    /// Returns the name of the type, for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "whole number",
            Self::Bytes => "bytes",
            Self::Tokens => "tokens",
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Days => "days",
        }
    }

    /// Returns the number of milliseconds in a unit of time.
    pub(super) fn millis(self) -> u64 {
        match self {
            Self::Days => 86_400_000,
            Self::Minutes => 60_000,
            Self::Seconds => 1_000,
            Self::Milliseconds | Self::Plain | Self::Bytes | Self::Tokens => 1,
        }
    }

    /// Returns advice for text that is not a quantity.
    pub(super) fn help(self, typed: &NodeValue) -> &'static str {
        if !matches!(typed, NodeValue::Text(_)) {
            return "";
        }
        match self {
            Self::Plain => "",
            Self::Bytes => {
                "write bytes, or a size such as 500MB (decimal, 500,000,000) or 512MiB (binary, 536,870,912)"
            }
            Self::Tokens => "write a count, also as 128k (128,000) or 1M (1,000,000)",
            Self::Days => "write days, such as 30d or 1y",
            _ => "write a number, or a time with its unit: ms, s, m, h, d, w or y, such as 90s, 10m or 1h30m",
        }
    }

    /// Parses a value as a number of this unit.
    pub(super) fn parse(self, value: &NodeValue) -> Option<f64> {
        match value {
            // Exact up to 2^53. No setting is larger.
            #[allow(clippy::cast_precision_loss)]
            NodeValue::Int(value) => Some(*value as f64),
            NodeValue::Float(value) => Some(*value),
            NodeValue::Text(text) => self.parse_text(text.trim()),
            _ => None,
        }
    }

    fn parse_text(self, text: &str) -> Option<f64> {
        if let Some(number) = number(text) {
            return Some(number);
        }
        match self {
            Self::Plain => None,
            Self::Bytes => one_of(&text.to_ascii_lowercase(), SIZES).map(|(number, unit)| number * unit),
            Self::Tokens => one_of(&text.to_ascii_lowercase(), COUNTS).map(|(number, unit)| number * unit),
            Self::Milliseconds => time(text).map(|seconds| seconds * 1e3),
            Self::Seconds => time(text),
            Self::Minutes => time(text).map(|seconds| seconds / MINUTE),
            Self::Days => time(text).map(|seconds| seconds / DAY),
        }
    }
}

/// Returns a number as an integer, or `None` if it has a fraction.
pub(super) fn to_whole(number: f64) -> Option<i128> {
    // Factors such as 0.001 are not exact.
    const NEAR: f64 = 1e-6;
    let round = number.round();
    // Exact up to 2^53. No setting is larger.
    #[allow(clippy::cast_possible_truncation)]
    ((number - round).abs() < NEAR && round.abs() < 9e15).then_some(round as i128)
}

/// Parses a number. Digits may be grouped by `_`, as in YAML 1.1.
fn number(text: &str) -> Option<f64> {
    let grouped = |at: usize| {
        let digit =
            |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text.match_indices('_').all(|(at, _)| grouped(at));
    is_plain.then(|| f64::from_str(&text.replace('_', "")).ok()).flatten().filter(|number| number.is_finite())
}

/// Parses a number with its unit, and returns it with the unit's size.
fn one_of(text: &str, units: &[(&[&str], f64)]) -> Option<(f64, f64)> {
    let end = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = text.split_at(end);
    // An exponent is not supported, because its letter would be parsed as a unit.
    let number = number(digits.trim_end()).filter(|number| *number >= 0.0)?;
    let (_, size) = units.iter().find(|(names, _)| names.contains(&unit))?;
    Some((number, *size))
}

/// Parses a time with one or more parts (`90s`, `1h30m`, `1h 30m`), and returns it in seconds.
fn time(text: &str) -> Option<f64> {
    let (mut rest, mut seconds, mut before) = (text, 0.0, f64::INFINITY);
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (_, tail) = rest.split_at(unit);
        let (name, _) = tail.split_at(tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len()));
        let (head, more) = rest.split_at(unit + name.len());
        let (number, size) = one_of(head, TIMES)?;
        if size >= before {
            return None;
        }
        (seconds, before, rest) = (seconds + number * size, size, more.trim_start());
    }
    (!text.is_empty()).then_some(seconds)
}

/// Parses a time zone: a name known to this machine, or a fixed offset such as `+02:00` or `UTC-3`.
pub(super) fn time_zone(text: &str) -> Option<TimeZone> {
    let text = text.trim();
    TimeZone::get(text).ok().or_else(|| offset(text).map(TimeZone::fixed))
}

fn offset(text: &str) -> Option<Offset> {
    let signed = ["UTC", "GMT"].iter().find_map(|name| text.strip_prefix(name)).unwrap_or(text);
    let negative = || signed.strip_prefix(['-', '\u{2212}']).map(|digits| (-1, digits));
    let (sign, digits) = signed.strip_prefix('+').map(|digits| (1, digits)).or_else(negative)?;
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "00"),
        Some(_) => return None,
    };
    let read = |text: &str, most: i32| {
        let plain = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<i32>().ok()).flatten().filter(|number| *number <= most)
    };
    // No time zone is more than 14 hours from UTC.
    let seconds = read(hours, 14)? * 3_600 + read(minutes, 59)? * 60;
    Offset::from_seconds(sign * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_counts_and_times_may_have_units() {
        let text = |text: &str| NodeValue::Text(text.to_owned());
        for (unit, typed, expected) in [
            (NumberUnit::Bytes, "2GB", Some(2e9)),
            (NumberUnit::Bytes, "2g", Some(2e9)),
            (NumberUnit::Bytes, "2 GiB", Some(2_147_483_648.0)),
            (NumberUnit::Bytes, "2Gi", Some(2_147_483_648.0)),
            (NumberUnit::Bytes, "1.5kB", Some(1_500.0)),
            (NumberUnit::Bytes, "512 MiB", Some(536_870_912.0)),
            (NumberUnit::Bytes, "10_000", Some(10_000.0)),
            (NumberUnit::Bytes, "10m10k", None),
            (NumberUnit::Bytes, "2GHz", None),
            (NumberUnit::Bytes, "-1kB", None),
            (NumberUnit::Tokens, "128k", Some(128_000.0)),
            (NumberUnit::Tokens, "128K", Some(128_000.0)),
            (NumberUnit::Tokens, "1.5M", Some(1_500_000.0)),
            (NumberUnit::Tokens, "128kB", None),
            (NumberUnit::Tokens, "k", None),
            (NumberUnit::Seconds, "10m", Some(600.0)),
            (NumberUnit::Seconds, "1y", Some(31_536_000.0)),
            (NumberUnit::Seconds, "1h30m", Some(5_400.0)),
            (NumberUnit::Seconds, "1h 30m", Some(5_400.0)),
            (NumberUnit::Seconds, "90 seconds", Some(90.0)),
            (NumberUnit::Seconds, "250ms", Some(0.25)),
            (NumberUnit::Seconds, "90", Some(90.0)),
            (NumberUnit::Seconds, "1m1h", None),
            (NumberUnit::Seconds, "1m 1m", None),
            (NumberUnit::Seconds, "10M", None),
            (NumberUnit::Seconds, "1 fortnight", None),
            (NumberUnit::Seconds, "PT10M", None),
            (NumberUnit::Seconds, "", None),
            (NumberUnit::Milliseconds, "10s", Some(10_000.0)),
            (NumberUnit::Milliseconds, "500", Some(500.0)),
            (NumberUnit::Minutes, "1d", Some(1_440.0)),
            (NumberUnit::Days, "1y", Some(365.0)),
            (NumberUnit::Days, "2w", Some(14.0)),
            (NumberUnit::Days, "12h", Some(0.5)),
            (NumberUnit::Plain, "10k", None),
            (NumberUnit::Plain, "1_0", Some(10.0)),
            (NumberUnit::Plain, "_10", None),
            (NumberUnit::Plain, "1__0", None),
            (NumberUnit::Plain, "inf", None),
            (NumberUnit::Plain, "nan", None),
        ] {
            assert_eq!(unit.parse(&text(typed)), expected, "{unit:?} {typed}");
        }
        assert_eq!(NumberUnit::Bytes.parse(&NodeValue::Int(7)), Some(7.0));
        assert_eq!((to_whole(7.0), to_whole(7.5), to_whole(f64::NAN)), (Some(7), None, None));
    }

    #[test]
    fn a_time_zone_is_a_name_or_an_offset() {
        for (typed, expected) in [
            ("+02:00", Some(7_200)),
            ("-0330", Some(-12_600)),
            ("+5", Some(18_000)),
            ("UTC+2", Some(7_200)),
            ("GMT-3", Some(-10_800)),
            ("UTC", Some(0)),
            ("\u{2212}02:00", Some(-7_200)),
            ("+25:00", None),
            ("+02:0", None),
            ("02:00", None),
            ("+", None),
            ("Mars/Olympus", None),
        ] {
            let found = time_zone(typed).map(|zone| zone.to_offset(jiff::Timestamp::UNIX_EPOCH).seconds());
            assert_eq!(found, expected, "{typed}");
        }
        assert_eq!(time_zone("Europe/Berlin").unwrap().iana_name(), Some("Europe/Berlin"));
    }
}
