//! Cron expressions in a time zone.
//!
//! An expression is matched on civil times, so a zone never changes its meaning. The rules for the two days of a year
//! on which clocks change are those of Vixie's cron. An expression whose minute or hour begins with `*` follows the
//! clock on the wall: it skips minutes that do not exist, and runs in both passes of a repeated hour. Any other
//! expression names times of the day: a time that does not exist runs once, right after the gap, and a repeated time
//! runs once, in its first pass.

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    Timestamp, ToSpan,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

/// Maximum length of an expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 255;
/// Number of fields of an expression.
const FIELDS: usize = 5;
/// Maximum number of matches that are skipped before a search ends. A repeated day has 1,440 minutes.
const MAX_SKIPPED: usize = 3_000;
/// Maximum number of changes of the clock that a search passes: more than fifty years.
const MAX_TRANSITIONS: usize = 256;

/// A cron expression with five fields.
#[derive(Clone, Debug)]
pub struct CronExpression {
    cron: Cron,
    /// Whether the expression follows the clock on the wall, instead of naming times of the day.
    is_wildcard: bool,
}

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// The number of fields is wrong.
    #[error("Cron expression must contain exactly 5 fields")]
    Fields,
    /// The expression is too long.
    #[error("Cron expression must have at most 255 characters")]
    TooLong,
    /// A field cannot be read.
    #[error("Cron expression `{0}` cannot be read: {1}")]
    Invalid(String, String),
    /// No day matches.
    #[error("Cron expression `{0}` never matches a day")]
    Never(String),
}

impl CronExpression {
    /// Parses an expression.
    ///
    /// # Errors
    /// If it does not have five readable fields, or no day matches.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(CronError::TooLong);
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() != FIELDS {
            return Err(CronError::Fields);
        }
        let text = fields.join(" ");
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron =
            parser.parse(&text).map_err(|error| CronError::Invalid(text.clone(), error.to_string()))?;
        let is_wildcard = fields[..2].iter().any(|field| field.starts_with('*'));
        let expression = Self { cron, is_wildcard };
        match expression.next_civil(DateTime::constant(2000, 1, 1, 0, 0, 0, 0), true) {
            Some(_) => Ok(expression),
            None => Err(CronError::Never(text)),
        }
    }

    /// Returns the first time after `after` that matches in a zone; `None` beyond the calendar.
    #[must_use]
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self.is_wildcard {
            true => self.next_minute(after, zone),
            false => self.next_time_of_day(after, zone),
        }
    }

    /// Returns the next civil time that matches.
    fn next_civil(&self, from: DateTime, is_inclusive: bool) -> Option<DateTime> {
        let from = from.to_zoned(TimeZone::UTC).ok()?;
        let next = self.cron.find_next_occurrence(&from, is_inclusive).ok()?;
        Some(next.datetime())
    }

    /// Searches the periods of constant offset one by one. Within such a period, civil and real time run alike.
    fn next_minute(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut changes = zone.following(after);
        let (mut from, mut offset, mut is_inclusive) = (after, zone.to_offset(after), false);
        for _ in 0..MAX_TRANSITIONS {
            let change = changes.next();
            let civil = self.next_civil(offset.to_datetime(from), is_inclusive)?;
            let found = offset.to_timestamp(civil).ok()?;
            match change {
                Some(change) if found >= change.timestamp() => {
                    (from, offset, is_inclusive) = (change.timestamp(), change.offset(), true);
                }
                _ => return Some(found),
            }
        }
        None
    }

    fn next_time_of_day(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut civil = zone.to_datetime(after);
        for _ in 0..MAX_SKIPPED {
            civil = self.next_civil(civil, false)?;
            let found = first_moment(civil, zone)?;
            if found > after {
                return Some(found);
            }
        }
        None
    }
}

/// Returns the moment of a civil time: of a repeated one the first, and of one that does not exist the end of the gap.
pub(crate) fn first_moment(civil: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(civil).ok(),
        AmbiguousOffset::Gap { before, .. } => end_of_gap(civil, before, zone),
    }
}

fn end_of_gap(civil: DateTime, before: Offset, zone: &TimeZone) -> Option<Timestamp> {
    // With the offset before the gap, the moment is at or after the change of the clock.
    let within = before.to_timestamp(civil).ok()?.checked_add(1.second()).ok()?;
    zone.preceding(within).next().map(|change| change.timestamp())
}

/// Finds a time zone by its IANA name.
#[must_use]
pub fn find_zone(name: &str) -> Option<TimeZone> {
    // Names are relative paths in the system's database. `:` and a leading `/` mean files elsewhere to C libraries.
    let is_name = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte))
        && !name.starts_with('/');
    if is_name { TimeZone::get(name).ok() } else { None }
}

#[cfg(test)]
mod tests;
