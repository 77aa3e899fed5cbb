//! Threads: their owners, last use, size and deletion.
//!
//! A thread's row is written in the same transaction as its log, so its position and its log size are exact. The size
//! of its files comes from the last measurement, stored with the thread's `updated` at that time, so that a later use
//! is noticed.

pub(crate) mod adoption;
pub(crate) mod client;
pub(crate) mod history;
pub(crate) mod log;
pub(crate) mod members;
pub(crate) mod search;
pub(crate) mod tasks;

use crate::{
    Db, Result, crash,
    engines::{Statement, Tx, from_row, query},
};
use pudu_base::{Seq, ThreadFolder, ThreadId, UserId};
use std::ops::Range;

/// Metadata of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// Its id.
    pub id: ThreadId,
    /// The bot through which it is used, or `api` or `local`; empty if none is recorded.
    pub account: String,
    /// The user whose folder contains its files.
    pub user: UserId,
    /// Its title; empty until it has one.
    pub title: String,
    /// Time when it was created, in milliseconds since 1970.
    pub created: i64,
    /// Time of its last use.
    pub updated: i64,
    /// The size of its log, in bytes.
    pub log_bytes: i64,
    /// The size of its files at the last measurement, in bytes.
    pub file_bytes: i64,
}

/// The size of a thread's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// The thread.
    pub thread: ThreadId,
    /// The thread's `updated` at the time of the measurement.
    pub updated: i64,
    /// Their size, in bytes.
    pub bytes: i64,
}

/// Result of deleting a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Its rows are deleted; its files still have to be removed.
    Done,
    /// The thread has an open turn or a client's run, or was used too recently. Nothing was deleted.
    InUse,
    /// There is no such thread.
    Unknown,
}

from_row!(ThreadFolder { owner: "user_id", thread: "id" });
from_row!(ThreadRow { id, account, user: "user_id", title, created, updated, log_bytes, file_bytes });

impl Db {
    /// Records a use of a thread outside its log, such as an added file.
    pub async fn thread_used(&self, folder: &ThreadFolder, account: &str, now: i64) -> Result<()> {
        let (folder, account) = (folder.clone(), account.to_owned());
        self.write(&crash::THREAD_USED, move |tx| used(tx, &folder, &account, now)).await
    }

    /// Returns the accounts that have threads, audit rows or approvals: bots, `api`, `local` and the empty name.
    pub async fn accounts(&self) -> Result<Vec<String>> {
        let sql = "SELECT account FROM threads UNION SELECT account FROM audit
            UNION SELECT account FROM approvals ORDER BY 1";
        self.all(query(sql)).await
    }

    /// Returns the threads of a bot, of `api` or of `local`, most recently used first.
    pub async fn threads(&self, account: &str) -> Result<Vec<ThreadRow>> {
        let sql =
        "SELECT id, account, user_id, title, created, updated, log_bytes, file_bytes FROM threads WHERE account = $1
            ORDER BY updated DESC, id DESC";
        self.all(query(sql).bind(account)).await
    }

    /// Returns up to `limit` threads of one bot or of all, most recently used first.
    pub async fn newest_threads(&self, account: Option<&str>, limit: i64) -> Result<Vec<ThreadRow>> {
        let sql = "SELECT id, account, user_id, title, created, updated, log_bytes, file_bytes FROM threads
            WHERE account = COALESCE($1, account) ORDER BY updated DESC, id DESC LIMIT $2";
        self.all(query(sql).bind(account).bind(limit)).await
    }

    /// Returns the title of a thread, if it has one.
    pub async fn title(&self, thread: &ThreadId) -> Result<Option<String>> {
        self.find(query("SELECT title FROM threads WHERE id = $1 AND title <> ''").bind(thread)).await
    }

    /// Replaces a thread's title, unless it is no longer `before`.
    pub async fn replace_title(&self, thread: &ThreadId, before: &str, title: &str) -> Result<()> {
        self.execute(&crash::TITLED, entitle(thread.as_str(), before, title)).await.map(drop)
    }

    /// Returns the user whose folder contains the files of a thread, once known.
    pub async fn owner(&self, thread: &ThreadId) -> Result<Option<UserId>> {
        let sql = "SELECT user_id FROM threads WHERE id = $1";
        self.find(query(sql).bind(thread)).await
    }

    /// Returns up to `limit` threads that were used since their files were measured, each with its last use.
    pub async fn unmeasured(&self, limit: i64) -> Result<Vec<(ThreadFolder, i64)>> {
        let sql = "SELECT user_id, id, updated FROM threads WHERE measured <> updated LIMIT $1";
        let rows = self.all(query(sql).bind(limit)).await?;
        let with_folder = |(owner, thread, updated)| (ThreadFolder { owner, thread }, updated);
        Ok(rows.into_iter().map(with_folder).collect())
    }

    /// Stores the sizes of the files of threads.
    pub async fn measured(&self, sizes: Vec<FileSize>) -> Result<()> {
        self.write(&crash::MEASURED, move |tx| {
            let sql = "UPDATE threads SET file_bytes = $1, measured = $2 WHERE id = $3";
            for FileSize { thread, updated, bytes } in &sizes {
                query(sql).bind(*bytes).bind(*updated).bind(thread.as_str()).execute(tx)?;
            }
            Ok(())
        })
        .await
    }

    /// Deletes a thread with its log, runs, approvals and settled turns, unless it is in use or was used after
    /// `unused_since`. The caller removes its files next: [`Db::files_to_remove`] lists the thread until
    /// [`Db::files_removed`]. A conversation bound to the thread is deleted, or bound to the thread `next` if it has
    /// people's choices.
    pub async fn delete_thread(
        &self,
        thread: &ThreadId,
        unused_since: i64,
        next: &ThreadId,
    ) -> Result<Deletion> {
        let (thread, since, next) = (thread.clone(), unused_since, next.clone());
        self.write(&crash::DELETE_THREAD, move |tx| delete(tx, thread.as_str(), since, next.as_str())).await
    }

    /// Returns whether a thread has not been used since `unused_since` and has no open turn and no client's run.
    pub async fn is_unused(&self, thread: &ThreadId, unused_since: i64) -> Result<bool> {
        let (thread, since) = (thread.clone(), unused_since);
        self.read(move |tx| is_unused(tx, &thread, since)).await
    }

    /// Returns the deleted threads whose files may still be there.
    pub async fn files_to_remove(&self) -> Result<Vec<ThreadFolder>> {
        let sql = "SELECT user_id, id FROM deleted_threads WHERE id NOT IN (SELECT id FROM threads)";
        self.all(query(sql)).await
    }

    /// Records that the files of a deleted thread were removed.
    pub async fn files_removed(&self, thread: &ThreadId) -> Result<()> {
        let delete = query("DELETE FROM deleted_threads WHERE id = $1").bind(thread);
        self.execute(&crash::FILES_REMOVED, delete).await.map(drop)
    }
}

/// Advances a thread's position from the start of a range to its end. Returns false if it was not at the start.
pub(crate) fn move_on(
    tx: &mut Tx<'_>,
    thread: &ThreadId,
    seq: Range<Seq>,
    bytes: usize,
    now: i64,
) -> Result<bool> {
    let sql = match seq.start {
        0 => {
            "INSERT INTO threads (id, account, seq, created, updated, log_bytes, file_bytes, measured)
                VALUES ($1, '', $3, $5, $5, $4, 0, 0)
                ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, updated = excluded.updated,
                    log_bytes = threads.log_bytes + excluded.log_bytes WHERE threads.seq = $2"
        }
        _ => {
            "UPDATE threads SET seq = $3, updated = $5, log_bytes = log_bytes + $4
                WHERE id = $1 AND seq = $2"
        }
    };
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let moved = query(sql).bind(thread.as_str()).bind(seq.start).bind(seq.end).bind(bytes).bind(now);
    Ok(moved.execute(tx)? > 0)
}

/// Records a thread's owner and bot, unless they are recorded.
pub(crate) fn belongs(tx: &mut Tx<'_>, folder: &ThreadFolder, account: &str, now: i64) -> Result<()> {
    // The owner does not change, because the owner's folder may already contain files.
    let sql =
        "INSERT INTO threads (id, account, user_id, seq, created, updated, log_bytes, file_bytes, measured)
            VALUES ($1, $2, $4, 0, $3, $3, 0, 0, 0)
            ON CONFLICT (id) DO UPDATE SET account = excluded.account WHERE threads.account = ''";
    let insert = query(sql).bind(folder.thread.as_str()).bind(account).bind(now);
    insert.bind(folder.owner.as_str()).execute(tx)?;
    Ok(())
}

/// Like [`belongs`], and records the current use.
pub(crate) fn used(tx: &mut Tx<'_>, folder: &ThreadFolder, account: &str, now: i64) -> Result<()> {
    belongs(tx, folder, account, now)?;
    let sql = "UPDATE threads SET updated = $1 WHERE id = $2 AND updated < $1";
    query(sql).bind(now).bind(folder.thread.as_str()).execute(tx)?;
    Ok(())
}

/// Returns the statement that replaces a thread's title `before`, which is empty for a thread without a title.
pub(crate) fn entitle<'q>(thread: &'q str, before: &'q str, title: &'q str) -> Statement<'q> {
    let sql = "UPDATE threads SET title = $1 WHERE id = $2 AND title = $3";
    query(sql).bind(title).bind(thread).bind(before)
}

/// SQL condition that a thread `$1` was not used after `$2`, and has no open turn and no client's run.
macro_rules! unused {
    ($begin:literal $(, $end:literal)?) => {
        concat!(
            $begin,
            " FROM threads WHERE id = $1 AND updated <= $2 AND NOT EXISTS (SELECT 1 FROM turns
                WHERE turns.thread = threads.id AND delivered IS NULL AND parked IS NULL)
            AND NOT EXISTS (SELECT 1 FROM runs
                WHERE runs.thread = threads.id AND ended IS NULL AND runs.origin IN ('api', 'schedule'))"
            $(, $end)?
        )
    };
}

/// Returns whether a thread was not used after a time, and has no open turn and no client's run.
pub(crate) fn is_unused(tx: &mut Tx<'_>, thread: &ThreadId, since: i64) -> Result<bool> {
    query(unused!("SELECT 1")).bind(thread.as_str()).bind(since).finds(tx)
}

fn delete(tx: &mut Tx<'_>, thread: &str, since: i64, next: &str) -> Result<Deletion> {
    let deleted = query(unused!("DELETE", " RETURNING user_id")).bind(thread).bind(since);
    let Some(user) = deleted.fetch_optional::<String>(tx)? else {
        let exists = query("SELECT 1 FROM threads WHERE id = $1").bind(thread);
        let exists = exists.finds(tx)?;
        return Ok(if exists { Deletion::InUse } else { Deletion::Unknown });
    };
    const ROWS: [&str; 10] = [
        "DELETE FROM feedback WHERE thread = $1",
        "DELETE FROM thread_people WHERE thread = $1",
        "DELETE FROM log WHERE thread = $1",
        "DELETE FROM snapshots WHERE thread = $1",
        "DELETE FROM runs WHERE thread = $1",
        "DELETE FROM learnings WHERE thread = $1",
        "DELETE FROM learnt WHERE thread = $1",
        "DELETE FROM approvals WHERE thread = $1",
        "DELETE FROM turns WHERE thread = $1",
        "DELETE FROM conversations WHERE thread = $1 AND (account = 'api'
            OR COALESCE(model, mode, agent, thinking) IS NULL)",
    ];
    for sql in ROWS {
        query(sql).bind(thread).execute(tx)?;
    }
    let sql = "INSERT INTO deleted_threads (id, user_id) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
    query(sql).bind(thread).bind(&user).execute(tx)?;
    let sql = "UPDATE conversations SET thread = $1 WHERE thread = $2";
    query(sql).bind(next).bind(thread).execute(tx)?;
    Ok(Deletion::Done)
}
