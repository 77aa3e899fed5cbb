//! Stored data of chats: its size, how long it is kept, and how it is deleted.
//!
//! The rules are an account's own. A thread goes with its log, its runs and its files; files may go before their
//! thread does; the audit has limits of its own, because it has to outlive what it tells of.

use crate::memory::{Memories, MemoryTrouble};
use pudu_base::{ThreadFolder, ThreadId};
use pudu_kit::clock::millis;
use pudu_memory::MemoryOptions;
use pudu_sandbox::Folders;
use pudu_store::{AuditLimits, AuditSize, Db, Deletion, FileSize, StoreError, ThreadRow};
use std::{collections::BTreeMap, io, time::Duration};

/// A thread that was used within this time, in milliseconds, is never deleted for its size.
const RECENT: i64 = 60 * 60 * 1000;
/// Threads whose files are measured at a time.
const MEASURED_AT_ONCE: u16 = 200;

/// Number of tries to take deleted text out of the database's log of writes. Each one waits for readers for some seconds.
const MAX_PURGES: u32 = 20;
/// Pause between two such tries.
const PURGE_PAUSE: Duration = Duration::from_secs(1);

/// How long something of an account is kept, and how large all of it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// How long it is kept without being used; for good, if `None`.
    pub age: Option<Duration>,
    /// How many bytes all of it may have; those unused for longest go first.
    pub bytes: Option<u64>,
}

/// How much of what an account leaves behind is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Threads, with their logs, runs and files.
    pub threads: RetentionLimits,
    /// The files of threads: uploads, workspace and outputs.
    pub files: RetentionLimits,
    /// How long the audit is kept; for good, if `None`.
    pub audit_age: Option<Duration>,
    /// How many rows of the audit are kept.
    pub audit_rows: Option<u32>,
}

/// The retention of each account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionRules {
    /// Retention of accounts that are not listed.
    pub usual: Retention,
    /// Retention of single accounts.
    pub accounts: BTreeMap<String, Retention>,
    /// Retention of memory, which is people's and no account's.
    pub memory: MemoryRetention,
}

/// How long something is remembered of each person and room; for good, where `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRetention {
    /// A fact, since it was stored, changed or confirmed last.
    pub facts: Option<Duration>,
    /// Earlier words of people that answers look up, since they were said.
    pub turns: Option<Duration>,
}

/// Stored data of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountUsage {
    /// The account; empty where nobody knows whose it is.
    pub account: String,
    /// Its threads.
    pub threads: u64,
    /// The size of their logs, in bytes.
    pub log_bytes: u64,
    /// The size of their files, in bytes.
    pub file_bytes: u64,
    /// When the thread that is unused for longest was used last, in milliseconds since 1970.
    pub oldest: Option<i64>,
    /// Rows of the audit.
    pub audit_rows: u64,
    /// Rules in force for it.
    pub retention: Retention,
    /// Data that its rules delete next.
    pub due: Pruned,
}

/// Amount of data that was deleted, or is to be deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Threads, with their files.
    pub threads: u64,
    /// Threads that stay and lose their files.
    pub stripped: u64,
    /// The size of all that, in bytes.
    pub bytes: u64,
    /// Rows of the audit, and approvals.
    pub audit_rows: u64,
}

/// The store and the folders, as a place that fills up.
#[derive(Clone)]
pub struct Storage {
    db: Db,
    folders: Folders,
}

/// Threads of an account that its rules delete, and those that lose their files.
#[derive(Debug, Default, PartialEq, Eq)]
struct PrunePlan<'a> {
    delete: Vec<&'a ThreadRow>,
    strip: Vec<&'a ThreadRow>,
}

impl RetentionRules {
    /// Returns an account's retention.
    #[must_use]
    pub fn of(&self, account: &str) -> &Retention {
        self.accounts.get(account).unwrap_or(&self.usual)
    }
}

impl Storage {
    /// Looks after a store and the folders of its threads.
    #[must_use]
    pub fn new(db: Db, folders: Folders) -> Self {
        Self { db, folders }
    }

    /// Returns this storage for callers that cannot wait: a call of the store that takes longer than `limit` fails.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { db: self.db.within(limit), ..self }
    }

    /// Returns what each account leaves behind, and what its rules have deleted next.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn usage(&self, rules: &RetentionRules, now: i64) -> Result<Vec<AccountUsage>, StoreError> {
        self.measure().await?;
        self.usage_as_stored(rules, now).await
    }

    /// Returns the threads of one account, or of all, those first that were used last; `most` of them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn threads(&self, account: Option<&str>, most: usize) -> Result<Vec<ThreadRow>, StoreError> {
        self.db.newest_threads(account, i64::try_from(most).unwrap_or(i64::MAX)).await
    }

    /// Like [`Storage::usage`], with the sizes of files as they were measured last. It writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn usage_as_stored(
        &self,
        rules: &RetentionRules,
        now: i64,
    ) -> Result<Vec<AccountUsage>, StoreError> {
        let mut usage = Vec::new();
        for account in self.db.accounts().await? {
            let retention = rules.of(&account);
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

    /// Deletes what the rules do not keep.
    ///
    /// # Errors
    /// When the store fails. What was deleted before stays deleted.
    pub async fn prune(&self, rules: &RetentionRules, now: i64) -> Result<Pruned, StoreError> {
        self.remove_left_files().await?;
        self.measure().await?;
        let mut pruned = Pruned::default();
        for account in self.db.accounts().await? {
            let retention = rules.of(&account);
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

    /// Forgets what is remembered for too long.
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
    /// When the store fails.
    pub async fn delete(&self, thread: &ThreadId) -> Result<Deletion, StoreError> {
        let deletion = self.delete_unused(thread, i64::MAX).await?;
        if deletion == Deletion::Done {
            self.purge_soon();
        }
        Ok(deletion)
    }

    /// Takes deleted text out of the database's log of writes, again and again until no reader is in the way.
    fn purge_soon(&self) {
        let db = self.db.clone();
        drop(tokio::spawn(async move {
            for attempt in 1..=MAX_PURGES {
                match db.purge_write_log().await {
                    Ok(()) => return,
                    Err(error) if attempt == MAX_PURGES => {
                        tracing::error!(%error, "failed to take deleted threads out of the log of the database");
                    }
                    Err(_) => tokio::time::sleep(PURGE_PAUSE).await,
                }
            }
        }));
    }

    async fn delete_unused(&self, thread: &ThreadId, since: i64) -> Result<Deletion, StoreError> {
        // No upload comes between the rows and the files.
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

    /// Removes the files of a thread that stays; tells whether it was unused.
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
        match tokio::task::spawn_blocking(move || how(&folders, &own)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(thread = %folder.thread, %error, "failed to remove the files of a thread; trying again later");
                false
            }
            Err(_) => false,
        }
    }

    /// Removes what a death or a failure left of files that were to go.
    async fn remove_left_files(&self) -> Result<(), StoreError> {
        for folder in self.db.files_to_remove().await? {
            self.remove_files(&folder).await?;
        }
        let folders = self.folders.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || folders.remove_deleted()).await {
            tracing::warn!(%error, "failed to remove files of deleted threads; trying again later");
        }
        Ok(())
    }

    /// Measures the files of threads that were used since that was done last.
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
                    tracing::warn!(%thread, "failed to measure the files of a thread; they count as none");
                    0
                });
                FileSize { thread, updated, bytes: i64::try_from(bytes).unwrap_or(i64::MAX) }
            };
            let measured = move || threads.into_iter().map(measure).collect();
            let Ok(sizes) = tokio::task::spawn_blocking(measured).await else { return Ok(()) };
            self.db.measured(sizes).await?;
            // Threads that are in use just now would keep this going.
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

/// Returns the plan for an account's threads, which are sorted by their last use, newest first.
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

/// By how many bytes there is too much.
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

    /// Threads that are unused for so many hours, with so many bytes of log and of files.
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
    fn what_is_old_or_too_much_goes_the_longest_unused_first() {
        let all = rows(&[(0, 10, 90), (2, 10, 20), (5, 10, 0), (9, 10, 30)]);
        let table: &[(RetentionLimits, RetentionLimits, &[&str], &[&str])] = &[
            (limits(0, 0), limits(0, 0), &[], &[]),
            (limits(5, 0), limits(0, 0), &["9"], &[]),
            (limits(4, 0), limits(1, 0), &["9", "5"], &["2"]),
            (limits(0, 180), limits(0, 0), &[], &[]),
            (limits(0, 179), limits(0, 0), &["9"], &[]),
            (limits(0, 139), limits(0, 0), &["9", "5"], &[]),
            // What was used just now stays, however large it is.
            (limits(0, 1), limits(0, 0), &["9", "5", "2"], &[]),
            (limits(0, 0), limits(0, 110), &[], &["9"]),
            (limits(0, 0), limits(0, 100), &[], &["9", "2"]),
            // A thread that goes takes its files along, and they count.
            (limits(6, 0), limits(0, 110), &["9"], &[]),
            (limits(0, 170), limits(1, 0), &["9"], &["2"]),
        ];
        for (threads, files, deleted, stripped) in table {
            let retention = Retention { threads: *threads, files: *files, ..Retention::default() };
            let plan = plan(&all, &retention, NOW);
            let ids = |rows: &[&ThreadRow]| rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>();
            let told = (ids(&plan.delete), ids(&plan.strip));
            let wanted =
                [deleted, stripped].map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(told, wanted.into(), "{retention:?}");
        }
    }
}
