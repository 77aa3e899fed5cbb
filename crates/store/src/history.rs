//! The past of threads: their writes with their times, and their earlier states. Nothing is kept for it beyond the log.

use crate::{
    Db, StoreError,
    error::unreadable,
    statement::{Tx, query},
};
use pudu_base::{RunId, Seq, ThreadId, ThreadState, Update};

/// A row of a thread's log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// Its position, from 1.
    pub seq: Seq,
    /// The run that wrote it.
    pub run: RunId,
    /// When, in milliseconds since 1970; 0 in rows of before that was noted.
    pub at: i64,
    /// The change.
    pub update: Update,
}

impl Db {
    /// Returns up to `limit` rows of a thread's log behind a position, oldest first; of one run if it is named.
    pub async fn log_after(
        &self,
        thread: &ThreadId,
        run: Option<&RunId>,
        after: Seq,
        limit: i64,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let rows = self.read_much((thread, run, after, limit), |(thread, run, after, limit), tx| {
            Box::pin(after_position(tx, thread, *run, *after, *limit))
        });
        rows.await?.into_iter().map(entry).collect()
    }

    /// Returns up to `limit` rows of a thread's log before a position, newest first.
    pub async fn log_before(
        &self,
        thread: &ThreadId,
        before: Seq,
        limit: i64,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let rows = self.read_much((thread, before, limit), |(thread, before, limit), tx| {
            Box::pin(before_position(tx, thread, *before, *limit))
        });
        rows.await?.into_iter().map(entry).collect()
    }

    /// Returns a thread as it was behind a row of its log, and the position of the last row that was read: another one
    /// where the log is shorter.
    pub async fn state_at(&self, thread: &ThreadId, seq: Seq) -> Result<(Seq, ThreadState), StoreError> {
        self.read_much((thread, seq), |(thread, seq), tx| Box::pin(fold(tx, thread, *seq))).await
    }

    /// Returns the positions of the first and the last row that a run wrote.
    pub async fn span_of_run(
        &self,
        thread: &ThreadId,
        run: &RunId,
    ) -> Result<Option<(Seq, Seq)>, StoreError> {
        self.read_much((thread, run), |(thread, run), tx| Box::pin(span(tx, thread, run))).await
    }
}

type LogColumns = (Seq, String, i64, String);

fn entry((seq, run, at, body): LogColumns) -> Result<LogEntry, StoreError> {
    let update = serde_json::from_str(&body).map_err(|error| unreadable("a thread's row", &error))?;
    Ok(LogEntry { seq, run: run.into(), at, update })
}

async fn after_position(
    tx: &mut Tx<'_>,
    thread: &ThreadId,
    run: Option<&RunId>,
    after: Seq,
    limit: i64,
) -> Result<Vec<LogColumns>, StoreError> {
    let sql = "SELECT seq, run, at, body FROM log WHERE thread = $1 AND seq > $2 AND run = COALESCE($3, run)
        ORDER BY seq LIMIT $4";
    let query = query(sql).bind(thread.as_str()).bind(after).bind(run.map(RunId::as_str));
    query.bind(limit).fetch_all(tx).await
}

async fn before_position(
    tx: &mut Tx<'_>,
    thread: &ThreadId,
    before: Seq,
    limit: i64,
) -> Result<Vec<LogColumns>, StoreError> {
    let sql = "SELECT seq, run, at, body FROM log WHERE thread = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3";
    query(sql).bind(thread.as_str()).bind(before).bind(limit).fetch_all(tx).await
}

async fn fold(tx: &mut Tx<'_>, thread: &ThreadId, until: Seq) -> Result<(Seq, ThreadState), StoreError> {
    let (from, mut state) = crate::log::snapshot_until(tx, thread, until).await?;
    let sql = "SELECT seq, body FROM log WHERE thread = $1 AND seq > $2 AND seq <= $3 ORDER BY seq";
    let query = query(sql).bind(thread.as_str()).bind(from).bind(until);
    let mut reached = from;
    let apply = |(seq, body): (Seq, String)| {
        state.apply(serde_json::from_str(&body).map_err(|error| unreadable("a thread's row", &error))?);
        reached = seq;
        Ok(())
    };
    query.each(tx, apply).await?;
    Ok((reached, state))
}

async fn span(tx: &mut Tx<'_>, thread: &ThreadId, run: &RunId) -> Result<Option<(Seq, Seq)>, StoreError> {
    let sql = "SELECT MIN(seq), MAX(seq) FROM log WHERE thread = $1 AND run = $2";
    let row: (Option<Seq>, Option<Seq>) =
        query(sql).bind(thread.as_str()).bind(run.as_str()).fetch_one(tx).await?;
    Ok(row.0.zip(row.1))
}
