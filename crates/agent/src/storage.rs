//! Size, retention and deletion of stored data.
//!
//! The rules are set per account, which is a bot, `api` or `local`; the last two have the common rules. A thread is
//! deleted with its log, its runs and its files; files may be deleted before their thread. The audit log has its own
//! limits, because it must outlive the threads that it records.

use crate::memory::{Memories, MemoryTrouble};
use pudu_base::{ThreadFolder, ThreadId};
use pudu_kit::clock::millis;
use pudu_memory::MemoryOptions;
use pudu_sandbox::Folders;
use pudu_store::{AuditLimits, AuditSize, Db, Deletion, FileSize, StoreError, ThreadRow};
use std::{collections::BTreeMap, io, time::Duration};

/// How long after its last use a thread is exempt from the size limits, in milliseconds.
const RECENT: i64 = 60 * 60 * 1000;
/// Number of threads whose files are measured per batch.
const MEASURED_AT_ONCE: u16 = 200;

/// Maximum number of attempts to purge deleted text from the database's write-ahead log. Each attempt waits a few
/// seconds for readers.
const MAX_PURGES: u32 = 20;
/// Pause between two attempts to purge.
const PURGE_PAUSE: Duration = Duration::from_secs(1);

/// Limits on the age and the total size of a bot's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Maximum age since the last use; unlimited if `None`.
    pub age: Option<Duration>,
    /// Maximum total size in bytes. The least recently used data is deleted first.
    pub bytes: Option<u64>,
}

/// Retention of a bot's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Threads, with their logs, runs and files.
    pub threads: RetentionLimits,
    /// The files of threads: uploads, workspace and outputs.
    pub files: RetentionLimits,
    /// Maximum age of audit entries; unlimited if `None`.
    pub audit_age: Option<Duration>,
    /// Maximum number of audit rows.
    pub audit_rows: Option<u32>,
}

/// Retention of each bot's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionRules {
    /// Retention for accounts that are not listed, such as `api` and `local`.
    pub usual: Retention,
    /// Retention for individual bots.
    pub accounts: BTreeMap<String, Retention>,
    /// Retention of memory, which belongs to users and not to bots.
    pub memory: MemoryRetention,
}

/// Retention of the memory of users and groups; unlimited where `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRetention {
    /// Maximum age of a fact since it was last stored, changed or confirmed.
    pub facts: Option<Duration>,
    /// Maximum age of indexed messages.
    pub turns: Option<Duration>,
}

/// Stored data of a bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountUsage {
    /// The bot's name, or `api` or `local`; empty if unknown.
    pub account: String,
    /// Its threads.
    pub threads: u64,
    /// The size of their logs, in bytes.
    pub log_bytes: u64,
    /// The size of their files, in bytes.
    pub file_bytes: u64,
    /// Time of the last use of the least recently used thread, in milliseconds since 1970.
    pub oldest: Option<i64>,
    /// Number of audit rows.
    pub audit_rows: u64,
    /// The rules for the bot.
    pub retention: Retention,
    /// Data that the rules delete next.
    pub due: Pruned,
}

/// Amount of data that was deleted or is due for deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Number of threads that lose their log and files.
    pub threads: u64,
    /// Number of threads that lose only their files.
    pub stripped: u64,
    /// The total size, in bytes.
    pub bytes: u64,
    /// Number of audit rows and approvals.
    pub audit_rows: u64,
}

/// The store, and the folders of users and threads.
#[derive(Clone)]
pub struct Storage {
    db: Db,
    folders: Folders,
}

/// A bot's threads to delete, and its threads that lose only their files.
#[derive(Debug, Default, PartialEq, Eq)]
struct PrunePlan<'a> {
    delete: Vec<&'a ThreadRow>,
    strip: Vec<&'a ThreadRow>,
}

impl RetentionRules {
    /// Returns a bot's retention.
    #[must_use]
    pub fn for_account(&self, account: &str) -> &Retention {
        self.accounts.get(account).unwrap_or(&self.usual)
    }
}

impl Storage {
    /// Creates the handle for a store and the folders of its threads.
    #[must_use]
    pub fn new(db: Db, folders: Folders) -> Self {
        Self { db, folders }
    }

    /// Makes store calls that take longer than `limit` fail, for callers that cannot wait.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { db: self.db.within(limit), ..self }
    }

    /// Returns the usage of each bot, of `api` and of `local`, including the data that is due for deletion.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn usage(&self, rules: &RetentionRules, now: i64) -> Result<Vec<AccountUsage>, StoreError> {
        self.measure().await?;
        self.usage_as_stored(rules, now).await
    }

    /// Returns at most `limit` threads of one bot or of all, most recently used first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn threads(&self, account: Option<&str>, limit: usize) -> Result<Vec<ThreadRow>, StoreError> {
        self.db.newest_threads(account, i64::try_from(limit).unwrap_or(i64::MAX)).await
    }

    /// Like [`Storage::usage`], but with the last measured sizes of files. Nothing is written.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn usage_as_stored(
        &self,
        rules: &RetentionRules,
        now: i64,
    ) -> Result<Vec<AccountUsage>, StoreError> {
        let mut usage = Vec::new();
        for account in self.db.accounts().await? {
            let retention = rules.for_account(&account);
            let threads = self.db.threads(&account).await?;
            let AuditSize { rows, due } = self.db.audit_size(&account, audit_limits(retention, now)).await?;
            let sum = |of: fn(&ThreadRow) -> i64| threads.iter().map(|row| count(of(row))).sum();
            usage.push(AccountUsage {
                threads: threads.len() as u64,
                log_bytes: sum(|row| row.log_bytes),
                file_bytes: sum(|row| row.file_bytes),
                oldest: threads.last().map(|row| row.updated),
                audit_rows: count(rows),
                retention: *retention,
                due: Pruned { audit_rows: count(due), ..plan(&threads, retention, now).size() },
                account,
            });
        }
        Ok(usage)
    }

    /// Deletes the data that exceeds the rules.
    ///
    /// # Errors
    /// If the store fails. Earlier deletions remain.
    pub async fn prune(&self, rules: &RetentionRules, now: i64) -> Result<Pruned, StoreError> {
        self.remove_left_files().await?;
        self.measure().await?;
        let mut pruned = Pruned::default();
        for account in self.db.accounts().await? {
            let retention = rules.for_account(&account);
            let threads = self.db.threads(&account).await?;
            let plan = plan(&threads, retention, now);
            for row in plan.strip {
                if self.strip(row).await? {
                    pruned.stripped += 1;
                    pruned.bytes += count(row.file_bytes);
                }
            }
            for row in plan.delete {
                if self.delete_unused(&row.id, row.updated).await? == Deletion::Done {
                    pruned.threads += 1;
                    pruned.bytes += size(row);
                }
            }
            pruned.audit_rows += self.db.prune_audit(&account, audit_limits(retention, now)).await?;
        }
        self.forget_old(rules.memory, now).await?;
        if pruned.threads > 0 {
            self.purge_soon();
        }
        Ok(pruned)
    }

    /// Deletes memory that exceeds its maximum age.
    async fn forget_old(&self, rules: MemoryRetention, now: i64) -> Result<(), StoreError> {
        if let Some(age) = rules.turns {
            let age = millis(age);
            self.db.forget_turns_before(now.saturating_sub(age)).await?;
        }
        let Some(age) = rules.facts else { return Ok(()) };
        let memories = Memories::new(self.db.clone(), self.folders.home(), MemoryOptions::default());
        match memories.forget_older(age).await {
            Ok(()) => Ok(()),
            Err(MemoryTrouble::Store(error)) => Err(error),
            Err(error) => {
                tracing::warn!(%error, "failed to forget old facts; trying again later");
                Ok(())
            }
        }
    }

    /// Deletes a thread with its log, its runs and its files.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn delete(&self, thread: &ThreadId) -> Result<Deletion, StoreError> {
        let deletion = self.delete_unused(thread, i64::MAX).await?;
        if deletion == Deletion::Done {
            self.purge_soon();
        }
        Ok(deletion)
    }

    /// Purges deleted text from the database's write-ahead log in the background. Retries while a reader blocks it.
    fn purge_soon(&self) {
        let db = self.db.clone();
        drop(tokio::spawn(async move {
            for attempt in 1..=MAX_PURGES {
                match db.purge_write_log().await {
                    Ok(()) => return,
                    Err(error) if attempt == MAX_PURGES => {
                        tracing::error!(%error, "failed to purge deleted threads from the database's write-ahead log");
                    }
                    Err(_) => tokio::time::sleep(PURGE_PAUSE).await,
                }
            }
        }));
    }

    async fn delete_unused(&self, thread: &ThreadId, since: i64) -> Result<Deletion, StoreError> {
        // Blocks uploads between deleting the rows and the files.
        let still = self.folders.hold_uploads().await;
        let owner = self.db.owner(thread).await?.unwrap_or_default();
        let deletion = self.db.delete_thread(thread, since, &ThreadId::fresh()).await?;
        if deletion == Deletion::Done {
            self.db.forget_thread(thread).await?;
            self.remove_files(&ThreadFolder { owner, thread: thread.clone() }).await?;
        }
        drop(still);
        Ok(deletion)
    }

    /// Removes only the files of a thread. Returns `false` if the thread has been used since, or if the removal failed.
    async fn strip(&self, row: &ThreadRow) -> Result<bool, StoreError> {
        let still = self.folders.hold_uploads().await;
        let folder = ThreadFolder { owner: row.user.clone(), thread: row.id.clone() };
        if !self.db.is_unused(&row.id, row.updated).await? || !self.discard(&folder, Folders::strip).await {
            return Ok(false);
        }
        drop(still);
        let nothing = FileSize { thread: row.id.clone(), updated: row.updated, bytes: 0 };
        self.db.measured(vec![nothing]).await?;
        Ok(true)
    }

    /// Removes the files of a thread whose rows are gone.
    async fn remove_files(&self, folder: &ThreadFolder) -> Result<(), StoreError> {
        if self.discard(folder, Folders::remove).await {
            self.db.files_removed(&folder.thread).await?;
        }
        Ok(())
    }

    async fn discard(
        &self,
        folder: &ThreadFolder,
        how: fn(&Folders, &ThreadFolder) -> io::Result<()>,
    ) -> bool {
        let (folders, own) = (self.folders.clone(), folder.clone());
        match pudu_kit::blocking::run(move || how(&folders, &own)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(thread = %folder.thread, %error, "failed to remove the files of a thread; trying again later");
                false
            }
            Err(_) => false,
        }
    }

    /// Removes files of deleted threads that a crash or a failure left behind.
    async fn remove_left_files(&self) -> Result<(), StoreError> {
        for folder in self.db.files_to_remove().await? {
            self.remove_files(&folder).await?;
        }
        let folders = self.folders.clone();
        if let Ok(Err(error)) = pudu_kit::blocking::run(move || folders.remove_deleted()).await {
            tracing::warn!(%error, "failed to remove files of deleted threads; trying again later");
        }
        Ok(())
    }

    /// Measures the files of threads that were used since the last measurement.
    async fn measure(&self) -> Result<(), StoreError> {
        loop {
            let threads = self.db.unmeasured(MEASURED_AT_ONCE.into()).await?;
            if threads.is_empty() {
                return Ok(());
            }
            let is_last = threads.len() < usize::from(MEASURED_AT_ONCE);
            let folders = self.folders.clone();
            let measure = move |(folder, updated): (ThreadFolder, i64)| {
                let (bytes, thread) = (folders.size(&folder), folder.thread);
                let bytes = bytes.unwrap_or_else(|| {
                    tracing::warn!(%thread, "failed to measure the files of a thread; counting them as 0 bytes");
                    0
                });
                FileSize { thread, updated, bytes: i64::try_from(bytes).unwrap_or(i64::MAX) }
            };
            let measured = move || threads.into_iter().map(measure).collect();
            let Ok(sizes) = pudu_kit::blocking::run(measured).await else { return Ok(()) };
            self.db.measured(sizes).await?;
            // Threads in constant use would keep this loop running.
            if is_last {
                return Ok(());
            }
        }
    }
}

impl PrunePlan<'_> {
    fn size(&self) -> Pruned {
        let deleted: u64 = self.delete.iter().map(|row| size(row)).sum();
        let stripped: u64 = self.strip.iter().map(|row| count(row.file_bytes)).sum();
        Pruned {
            threads: self.delete.len() as u64,
            stripped: self.strip.len() as u64,
            bytes: deleted + stripped,
            audit_rows: 0,
        }
    }
}

/// Returns the plan for a bot's threads, which must be sorted by their last use, newest first.
fn plan<'a>(threads: &'a [ThreadRow], retention: &Retention, now: i64) -> PrunePlan<'a> {
    let mut plan = PrunePlan::default();
    let mut excess = Excess {
        threads: beyond(threads.iter().map(size).sum(), retention.threads.bytes),
        files: beyond(threads.iter().map(|row| count(row.file_bytes)).sum(), retention.files.bytes),
    };
    for row in threads.iter().rev() {
        let idle = now.saturating_sub(row.updated);
        let (old, recent) =
            (|limits: RetentionLimits| limits.age.is_some_and(|age| idle > millis(age)), idle < RECENT);
        if old(retention.threads) || (excess.threads > 0 && !recent) {
            excess.relieve(size(row), count(row.file_bytes));
            plan.delete.push(row);
        } else if row.file_bytes > 0 && (old(retention.files) || (excess.files > 0 && !recent)) {
            excess.relieve(count(row.file_bytes), count(row.file_bytes));
            plan.strip.push(row);
        }
    }
    plan
}

/// Bytes above the size limits.
struct Excess {
    threads: u64,
    files: u64,
}

impl Excess {
    fn relieve(&mut self, bytes: u64, file_bytes: u64) {
        self.threads = self.threads.saturating_sub(bytes);
        self.files = self.files.saturating_sub(file_bytes);
    }
}

fn beyond(bytes: u64, limit: Option<u64>) -> u64 {
    limit.map_or(0, |limit| bytes.saturating_sub(limit))
}

fn size(row: &ThreadRow) -> u64 {
    count(row.log_bytes).saturating_add(count(row.file_bytes))
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn audit_limits(retention: &Retention, now: i64) -> AuditLimits {
    AuditLimits {
        since: retention.audit_age.map(|age| now.saturating_sub(millis(age))),
        rows: retention.audit_rows.map(i64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const NOW: i64 = 1_000_000_000_000;

    /// Returns threads that have been unused for a number of hours, with the sizes of their logs and files in bytes.
    fn rows(threads: &[(i64, i64, i64)]) -> Vec<ThreadRow> {
        let row = |(hours, log_bytes, file_bytes): &(i64, i64, i64)| ThreadRow {
            id: hours.to_string().as_str().into(),
            account: "telegram".into(),
            user: pudu_base::UserId::local(),
            title: String::new(),
            created: 0,
            updated: NOW - hours * millis(HOUR),
            log_bytes: *log_bytes,
            file_bytes: *file_bytes,
        };
        threads.iter().map(row).collect()
    }

    fn limits(hours: u32, bytes: u64) -> RetentionLimits {
        RetentionLimits { age: (hours > 0).then_some(HOUR * hours), bytes: (bytes > 0).then_some(bytes) }
    }

    #[test]
    fn old_or_excess_data_is_deleted_least_recently_used_first() {
        let all = rows(&[(0, 10, 90), (2, 10, 20), (5, 10, 0), (9, 10, 30)]);
        let table: &[(RetentionLimits, RetentionLimits, &[&str], &[&str])] = &[
            (limits(0, 0), limits(0, 0), &[], &[]),
            (limits(5, 0), limits(0, 0), &["9"], &[]),
            (limits(4, 0), limits(1, 0), &["9", "5"], &["2"]),
            (limits(0, 180), limits(0, 0), &[], &[]),
            (limits(0, 179), limits(0, 0), &["9"], &[]),
            (limits(0, 139), limits(0, 0), &["9", "5"], &[]),
            // A recently used thread stays, however large it is.
            (limits(0, 1), limits(0, 0), &["9", "5", "2"], &[]),
            (limits(0, 0), limits(0, 110), &[], &["9"]),
            (limits(0, 0), limits(0, 100), &[], &["9", "2"]),
            // A deleted thread's files count as deleted.
            (limits(6, 0), limits(0, 110), &["9"], &[]),
            (limits(0, 170), limits(1, 0), &["9"], &["2"]),
        ];
        for (threads, files, deleted, stripped) in table {
            let retention = Retention { threads: *threads, files: *files, ..Retention::default() };
            let plan = plan(&all, &retention, NOW);
            let ids = |rows: &[&ThreadRow]| rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>();
            let planned = (ids(&plan.delete), ids(&plan.strip));
            let wanted =
                [deleted, stripped].map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(planned, wanted.into(), "{retention:?}");
        }
    }
}
