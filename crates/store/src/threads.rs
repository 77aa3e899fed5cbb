//! The threads: their owners, their last use, their size; and their end.
//!
//! A thread's row is written with its log, in the same transaction, so its position and its bytes are exact. The bytes
//! of its files are the last measurement, which names the use of the thread for which it holds.

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

/// A thread, from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// Its id.
    pub id: ThreadId,
    /// The account that it belongs to; empty if none is recorded.
    pub account: String,
    /// The user in whose folder its files are.
    pub user: UserId,
    /// Its title; empty until it has one.
    pub title: String,
    /// When it began, in milliseconds since 1970.
    pub created: i64,
    /// When it was last used.
    pub updated: i64,
    /// The size of its log, in bytes.
    pub log_bytes: i64,
    /// The size of its files, in bytes, as they were measured last.
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

/// Result of the order to delete a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Its rows are gone; its files are to be removed.
    Done,
    /// A turn of the thread is open, or it was used too lately. Nothing was deleted.
    InUse,
    /// There is no such thread.
    Unknown,
}

from_row!(ThreadFolder { owner: "user_id", thread: "id" });
from_row!(ThreadRow { id, account, user: "user_id", title, created, updated, log_bytes, file_bytes });

impl Db {
    /// Records that a thread is used outside of its log, by an added file.
    pub async fn thread_used(&self, folder: &ThreadFolder, account: &str, now: i64) -> Result<()> {
        let (folder, account) = (folder.clone(), account.to_owned());
        self.write(&crash::THREAD_USED, move |tx| used(tx, &folder, &account, now)).await
    }

    /// Returns the accounts that have threads, audit rows or approvals.
    pub async fn accounts(&self) -> Result<Vec<String>> {
        let sql = "SELECT account FROM threads UNION SELECT account FROM audit
            UNION SELECT account FROM approvals ORDER BY 1";
        self.all(query(sql)).await
    }

    /// Returns an account's threads, those first that were used last.
    pub async fn threads(&self, account: &str) -> Result<Vec<ThreadRow>> {
        let sql =
        "SELECT id, account, user_id, title, created, updated, log_bytes, file_bytes FROM threads WHERE account = $1
            ORDER BY updated DESC, id DESC";
        self.all(query(sql).bind(account)).await
    }

    /// Returns up to `limit` threads of one account, or of all, the last used first.
    pub async fn newest_threads(&self, account: Option<&str>, limit: i64) -> Result<Vec<ThreadRow>> {
        let sql = "SELECT id, account, user_id, title, created, updated, log_bytes, file_bytes FROM threads
            WHERE account = COALESCE($1, account) ORDER BY updated DESC, id DESC LIMIT $2";
        self.all(query(sql).bind(account).bind(limit)).await
    }

    /// Returns the title of a thread; none until it has one.
    pub async fn title(&self, thread: &ThreadId) -> Result<Option<String>> {
        self.find(query("SELECT title FROM threads WHERE id = $1 AND title <> ''").bind(thread)).await
    }

    /// Gives a thread another title, unless it has got a different one than `before` meanwhile.
    pub async fn replace_title(&self, thread: &ThreadId, before: &str, title: &str) -> Result<()> {
        self.execute(&crash::TITLED, entitle(thread.as_str(), before, title)).await.map(drop)
    }

    /// Returns the user in whose folder the files of a thread are, once that is known.
    pub async fn owner(&self, thread: &ThreadId) -> Result<Option<UserId>> {
        let sql = "SELECT user_id FROM threads WHERE id = $1";
        self.find(query(sql).bind(thread)).await
    }

    /// Returns threads that were used since their files were measured, `limit` at most, and when they were.
    pub async fn unmeasured(&self, limit: i64) -> Result<Vec<(ThreadFolder, i64)>> {
        let sql = "SELECT user_id, id, updated FROM threads WHERE measured <> updated LIMIT $1";
        let rows = self.all(query(sql).bind(limit)).await?;
        let with_folder = |(owner, thread, updated)| (ThreadFolder { owner, thread }, updated);
        Ok(rows.into_iter().map(with_folder).collect())
    }

    /// Keeps how large the files of threads are.
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

    /// Deletes a thread with its log, its runs, its approvals and its settled turns, unless it is in use or was used
    /// after `unused_since`. Its files are to be removed next: [`Db::files_to_remove`] names it until
    /// [`Db::files_removed`]. A conversation bound to the thread starts again; one with people's choices keeps
    /// them, and is bound to the thread `next`.
    pub async fn delete_thread(
        &self,
        thread: &ThreadId,
        unused_since: i64,
        next: &ThreadId,
    ) -> Result<Deletion> {
        let (thread, since, next) = (thread.clone(), unused_since, next.clone());
        self.write(&crash::DELETE_THREAD, move |tx| delete(tx, thread.as_str(), since, next.as_str())).await
    }

    /// Returns whether a thread was not used since `unused_since` and has no open turn and no client's run.
    pub async fn is_unused(&self, thread: &ThreadId, unused_since: i64) -> Result<bool> {
        let (thread, since) = (thread.clone(), unused_since);
        self.read(move |tx| is_unused(tx, &thread, since)).await
    }

    /// Returns the deleted threads whose files may still be there.
    pub async fn files_to_remove(&self) -> Result<Vec<ThreadFolder>> {
        let sql = "SELECT user_id, id FROM deleted_threads WHERE id NOT IN (SELECT id FROM threads)";
        self.all(query(sql)).await
    }

    /// Notes that the files of a deleted thread are gone.
    pub async fn files_removed(&self, thread: &ThreadId) -> Result<()> {
        let delete = query("DELETE FROM deleted_threads WHERE id = $1").bind(thread);
        self.execute(&crash::FILES_REMOVED, delete).await.map(drop)
    }
}

/// Moves a thread's position from the beginning of a range to its end. Returns whether it was at the beginning.
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

/// Records a thread's owner, unless one is recorded.
pub(crate) fn belongs(tx: &mut Tx<'_>, folder: &ThreadFolder, account: &str, now: i64) -> Result<()> {
    // Where its files are does not change: some may be there.
    let sql =
        "INSERT INTO threads (id, account, user_id, seq, created, updated, log_bytes, file_bytes, measured)
            VALUES ($1, $2, $4, 0, $3, $3, 0, 0, 0)
            ON CONFLICT (id) DO UPDATE SET account = excluded.account WHERE threads.account = ''";
    let insert = query(sql).bind(folder.thread.as_str()).bind(account).bind(now);
    insert.bind(folder.owner.as_str()).execute(tx)?;
    Ok(())
}

/// Likewise, and that it is used now.
pub(crate) fn used(tx: &mut Tx<'_>, folder: &ThreadFolder, account: &str, now: i64) -> Result<()> {
    belongs(tx, folder, account, now)?;
    let sql = "UPDATE threads SET updated = $1 WHERE id = $2 AND updated < $1";
    query(sql).bind(now).bind(folder.thread.as_str()).execute(tx)?;
    Ok(())
}

/// Returns the statement that gives a thread a title in place of another one; that of a thread without one is empty.
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
                WHERE runs.thread = threads.id AND ended IS NULL AND runs.origin = 'api')"
            $(, $end)?
        )
    };
}

/// Returns whether a thread was not used after a time, and nothing works on it or waits to.
pub(crate) fn is_unused(tx: &mut Tx<'_>, thread: &ThreadId, since: i64) -> Result<bool> {
    query(unused!("SELECT 1")).bind(thread.as_str()).bind(since).finds(tx)
}

fn delete(tx: &mut Tx<'_>, thread: &str, since: i64, next: &str) -> Result<Deletion> {
    let gone = query(unused!("DELETE", " RETURNING user_id")).bind(thread).bind(since);
    let Some(user) = gone.fetch_optional::<String>(tx)? else {
        let there = query("SELECT 1 FROM threads WHERE id = $1").bind(thread);
        let there = there.finds(tx)?;
        return Ok(if there { Deletion::InUse } else { Deletion::Unknown });
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
