//! Retention of chat data: maximum age and size.

use super::{declare::Setting, quantity::NumberUnit, reader::Section};
use pudu_agent::{MemoryRetention, Retention, RetentionLimits};
use std::time::Duration;

/// Maximum value of an age, in days: a hundred years.
const MAX_DAYS: u64 = 36_500;
/// Maximum value of a size, in bytes: a pebibyte.
const MAX_BYTES: u64 = 1 << 50;
/// Maximum value of the setting for a number of rows.
const MAX_ROWS: u32 = 1_000_000_000;

/// Reads the retention of memory, which belongs to users and not to a bot.
pub(super) fn memory(top: &Section<'_>) -> MemoryRetention {
    let section = top.section("retention");
    settings! { section =>
        /// Maximum age of a fact that was neither changed nor confirmed, in days; 0 keeps facts forever.
        facts as "memory_facts_max_age_days" = span(NumberUnit::Days, 0..=MAX_DAYS).limit(None, false);
        /// Maximum age of users' earlier messages that answers look up, in days; 0 keeps them as long as their thread.
        turns as "memory_turns_max_age_days" = span(NumberUnit::Days, 0..=MAX_DAYS).limit(days(365), false);
    }
    MemoryRetention { facts, turns }
}

impl<T: Default + PartialEq> Setting<'_, '_, T> {
    /// Returns a limit; 0 means none. The default of a bot's own limit is the common one.
    fn limit(self, usual: Option<T>, is_own: bool) -> Option<T> {
        let (usual, default_text) = (usual.unwrap_or_default(), format!("`retention.{}`", self.key));
        let limit = if is_own { self.or_described(usual, &default_text) } else { self.or(usual) };
        Some(limit).filter(|limit| *limit != T::default())
    }
}

/// Reads the `retention` of all bots, or of one bot, whose absent keys have the common values.
pub(super) fn read(of: &Section<'_>, common: Option<&Retention>) -> Retention {
    let own = common.is_some();
    let section = of.section("retention").needed(of.is_needed()).about(match own {
        true => "Overrides of `retention` for this bot; keys that are not set have its values.",
        false => {
            "Age and size limits of stored chat data. Above a limit, the least recently used data is \
             deleted first. `pudu storage` shows and prunes."
        }
    });
    let Retention { threads, files, audit_age, audit_rows } = common.copied().unwrap_or_else(usual);
    settings! { section =>
        /// Maximum age of an unused thread with its log, its runs and its files, in days; 0 keeps threads forever.
        threads_age as "threads_max_age_days" = span(NumberUnit::Days, 0..=MAX_DAYS).limit(threads.age, own);
        /// Maximum total size of a bot's threads, including files, in bytes; 0 sets no limit.
        threads_bytes as "threads_max_bytes" = amount(NumberUnit::Bytes, 0..=MAX_BYTES).limit(threads.bytes, own);
        /// Maximum age of the files of an unused thread (uploads, workspace, outputs), in days; 0 keeps files with their
        /// thread.
        files_age as "files_max_age_days" = span(NumberUnit::Days, 0..=MAX_DAYS).limit(files.age, own);
        /// Maximum total size of the files of a bot's threads, in bytes; 0 sets no limit.
        files_bytes as "files_max_bytes" = amount(NumberUnit::Bytes, 0..=MAX_BYTES).limit(files.bytes, own);
        /// Maximum age of audit entries and approvals, in days; 0 keeps them forever.
        audit_age as "audit_max_age_days" = span(NumberUnit::Days, 0..=MAX_DAYS).limit(audit_age, own);
        /// Maximum number of audit rows of a bot; 0 sets no limit.
        audit_rows as "audit_max_rows" = number(0..=MAX_ROWS).limit(audit_rows, own);
    }
    Retention {
        threads: RetentionLimits { age: threads_age, bytes: threads_bytes },
        files: RetentionLimits { age: files_age, bytes: files_bytes },
        audit_age,
        audit_rows,
    }
}

/// Returns the default retention, which deletes threads that were unused for a year.
fn usual() -> Retention {
    Retention {
        threads: RetentionLimits { age: days(365), bytes: None },
        audit_age: days(90),
        ..Retention::default()
    }
}

fn days(days: u64) -> Option<Duration> {
    Some(Duration::from_secs(days * 24 * 60 * 60))
}
