//! The audit log: the actor, the thread, the action, whether it was allowed, and how it ended. An entry is written
//! before the action. If an entry without an end belongs to a run that has ended or to a process that died, its
//! command is no longer running.

use crate::{
    Db, Result, crash,
    engines::{from_row, query},
    sweep::CHUNK,
};
use pudu_base::{RunId, ThreadId};

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Time when it began, in milliseconds since 1970.
    pub at: i64,
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The requester's bot, or `api` for runs of API clients, or `local`; empty if none.
    pub account: String,
    /// The platform's id of the requester.
    pub person: String,
    /// The kind of action: `exec`, `write`.
    pub action: String,
    /// The command, or the file's path.
    pub detail: String,
    /// Whether the action was allowed, and the author of that decision.
    pub verdict: String,
    /// A command's exit code, once it has ended. Negative if it was killed; the caller defines the reasons.
    pub code: Option<i64>,
    /// Time when it ended.
    pub ended: Option<i64>,
}

/// Code of a command that was stopped because its run ended.
pub const STOPPED: i64 = -5;
/// Code of a command that ended with the daemon.
pub const ABANDONED: i64 = -6;

/// Identifies an audit entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditEntryId(i64);

from_row!(AuditEntry { at, thread, run, account, person, action, detail, verdict, code, ended });

impl Db {
    /// Records that an action is about to be performed or was refused.
    pub async fn begin_audit_entry(&self, entry: AuditEntry) -> Result<AuditEntryId> {
        self.write(&crash::DEED_BEGINS, move |tx| {
            let sql =
                "INSERT INTO audit (at, thread, run, account, person, action, detail, verdict, code, ended)
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id";
            let AuditEntry { thread, run, account, person, action, detail, verdict, .. } = &entry;
            let texts = [thread.as_str(), run.as_str(), account, person, action, detail, verdict];
            let insert = query(sql).bind(entry.at).bind_all(texts);
            Ok(AuditEntryId(insert.bind(entry.code).bind(entry.ended).fetch_one(tx)?))
        })
        .await
    }

    /// Records how an action ended.
    pub async fn end_audit_entry(&self, id: AuditEntryId, code: Option<i64>, now: i64) -> Result<()> {
        let sql = "UPDATE audit SET code = $1, ended = $2 WHERE id = $3";
        self.execute(&crash::DEED_ENDS, query(sql).bind(code).bind(now).bind(id.0)).await.map(drop)
    }

    /// Closes the open entries of a previous process, whose actions ended with their run or that process.
    pub async fn abandon_audit_entries(&self, now: i64) -> Result<()> {
        if !self.finds(query("SELECT 1 FROM audit WHERE ended IS NULL LIMIT 1")).await? {
            return Ok(());
        }
        let sql = "UPDATE audit SET
            ended = COALESCE((SELECT runs.ended FROM runs WHERE runs.id = audit.run), $1),
            code = CASE WHEN run IN (SELECT id FROM runs WHERE ended IS NOT NULL)
                THEN CAST($2 AS BIGINT) ELSE CAST($3 AS BIGINT) END
            WHERE ended IS NULL";
        self.execute(&crash::DEED_ENDS, query(sql).bind(now).bind(STOPPED).bind(ABANDONED)).await.map(drop)
    }

    /// Returns the newest entries of one thread or of all threads, newest first.
    pub async fn audit_entries(&self, thread: Option<&ThreadId>, most: u32) -> Result<Vec<AuditEntry>> {
        let query = match thread {
            Some(thread) => query(DEEDS_OF_THREAD).bind(thread.as_str()),
            None => query(DEEDS),
        };
        self.all(query.bind(STOPPED).bind(i64::from(most))).await
    }
}

/// Retention limits of a bot's audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditLimits {
    /// Entries from before this time are deleted, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Maximum number of rows. The newest ones are kept.
    pub rows: Option<i64>,
}

/// Size of a bot's audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditSize {
    /// Number of rows.
    pub rows: i64,
    /// Number of rows beyond the limits.
    pub due: i64,
}

impl Db {
    /// Counts a bot's audit rows, and those beyond the limits.
    pub async fn audit_size(&self, account: &str, limits: AuditLimits) -> Result<AuditSize> {
        let account = account.to_owned();
        self.read_much(move |tx| {
            let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN at < $2 THEN 1 ELSE 0 END), 0) AS BIGINT)
                FROM audit WHERE account = $1";
            let query = query(sql).bind(&account).bind(limits.since.unwrap_or(i64::MIN));
            let (rows, old): (i64, i64) = query.fetch_one(tx)?;
            let surplus = limits.rows.map_or(0, |limit| rows - limit);
            Ok(AuditSize { rows, due: old.max(surplus) })
        })
        .await
    }

    /// Deletes a bot's audit rows beyond the limits, and approvals of the same age. Returns the number of deleted rows.
    pub async fn prune_audit(&self, account: &str, limits: AuditLimits) -> Result<u64> {
        let mut pruned = 0;
        for (sql, limit) in [(OLD_DEEDS, limits.since), (OLD_APPROVALS, limits.since), (SURPLUS, limits.rows)]
        {
            let Some(limit) = limit else { continue };
            loop {
                let prune = query(sql).bind(account).bind(limit).bind(CHUNK);
                let rows = self.execute(&crash::PRUNE_AUDIT, prune).await?;
                pruned += rows;
                if rows < CHUNK.unsigned_abs() {
                    break;
                }
            }
        }
        Ok(pruned)
    }
}

const OLD_DEEDS: &str = "DELETE FROM audit WHERE id IN
    (SELECT id FROM audit WHERE account = $1 AND at < $2 LIMIT $3)";
const OLD_APPROVALS: &str = "DELETE FROM approvals WHERE id IN
    (SELECT id FROM approvals WHERE account = $1 AND asked < $2 LIMIT $3)";
const SURPLUS: &str = "DELETE FROM audit WHERE id IN
    (SELECT id FROM audit WHERE account = $1 AND id <= (SELECT id FROM audit WHERE account = $1
        ORDER BY id DESC LIMIT 1 OFFSET $2) LIMIT $3)";

macro_rules! entries {
    ($only:literal, $code:literal, $most:literal) => {
        concat!(
            "SELECT audit.at, audit.thread, audit.run, account, person, action, detail, verdict,
                CASE WHEN audit.ended IS NULL AND runs.ended IS NOT NULL THEN CAST(",
            $code,
            " AS BIGINT) ELSE code END AS code, COALESCE(audit.ended, runs.ended) AS ended
            FROM audit LEFT JOIN runs ON runs.id = audit.run ",
            $only,
            " ORDER BY audit.id DESC LIMIT ",
            $most
        )
    };
}

const DEEDS: &str = entries!("", "$1", "$2");
const DEEDS_OF_THREAD: &str = entries!("WHERE audit.thread = $1", "$2", "$3");
