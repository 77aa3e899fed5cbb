//! Retention of the data of chats: maximum age and size.

use super::{quantity::NumberUnit, reader::Section};
use pudu_client::{MemoryRetention, Retention, RetentionLimits};
use std::time::Duration;

const DAY: u64 = 24 * 60 * 60;
/// The longest age that can be said, in days: a hundred years.
const MAX_DAYS: u64 = 36_500;
/// The largest size that can be said, in bytes: a pebibyte.
const MAX_BYTES: u64 = 1 << 50;
/// The largest number of rows that can be said.
const MAX_ROWS: u64 = 1_000_000_000;

/// Keys of all accounts together: memory is people's.
const MEMORY_KEYS: [&str; 2] = ["memory_facts_max_age_days", "memory_turns_max_age_days"];

/// Reads how long something is remembered.
pub(super) fn memory(top: &Section<'_>) -> MemoryRetention {
    let section = top.section("retention");
    let days = |key: &str, usual: u64| {
        let days =
            Some(section.amount(key, NumberUnit::Days, 0..=MAX_DAYS).or(usual)).filter(|days| *days > 0);
        days.map(|days| Duration::from_secs(days * DAY))
    };
    let [facts, turns] = MEMORY_KEYS;
    MemoryRetention { facts: days(facts, 0), turns: days(turns, 365) }
}

/// Reads the `retention` of all accounts, or of one: absent keys of one account have the common values.
pub(super) fn read(of: &Section<'_>, common: Option<&Retention>) -> Retention {
    let section = of.section("retention").needed(of.is_needed());
    let usual = common.copied().unwrap_or_else(usual);
    let number = |key: &str, unit: NumberUnit, max: u64, usual: u64| {
        let number = section.amount(key, unit, 0..=max);
        match common {
            None => number.or(usual),
            Some(_) => number.or_told(usual, &format!("`retention.{key}`")),
        }
    };
    let limit = |key: &str, unit: NumberUnit, max: u64, usual: Option<u64>| {
        Some(number(key, unit, max, usual.unwrap_or(0))).filter(|limit| *limit > 0)
    };
    let days = |key: &str, usual: Option<Duration>| {
        let days = limit(key, NumberUnit::Days, MAX_DAYS, usual.map(|age| age.as_secs() / DAY));
        days.map(|days| Duration::from_secs(days * DAY))
    };
    let bytes = |key: &str, usual: Option<u64>| limit(key, NumberUnit::Bytes, MAX_BYTES, usual);
    let rows = limit("audit_max_rows", NumberUnit::Plain, MAX_ROWS, usual.audit_rows.map(u64::from));
    Retention {
        threads: RetentionLimits {
            age: days("threads_max_age_days", usual.threads.age),
            bytes: bytes("threads_max_bytes", usual.threads.bytes),
        },
        files: RetentionLimits {
            age: days("files_max_age_days", usual.files.age),
            bytes: bytes("files_max_bytes", usual.files.bytes),
        },
        audit_age: days("audit_max_age_days", usual.audit_age),
        audit_rows: rows.map(|rows| u32::try_from(rows).unwrap_or(u32::MAX)),
    }
}

/// The default retention: threads unused for a year are of no use.
fn usual() -> Retention {
    let days = |days: u64| Some(Duration::from_secs(days * DAY));
    Retention {
        threads: RetentionLimits { age: days(365), bytes: None },
        audit_age: days(90),
        ..Retention::default()
    }
}
