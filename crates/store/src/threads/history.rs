//! The history of threads, read from the log: writes with their times, and earlier states.

use crate::{
    Db, Result,
    engines::{FromRow, Row, query},
    error::unreadable,
};
use pudu_base::{RunId, Seq, ThreadId, ThreadState, Update};

/// A row of a thread's log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// Its position, from 1.
    pub seq: Seq,
    /// The run that wrote it.
    pub run: RunId,
    /// Time of the write, in milliseconds since 1970; 0 in rows written by versions that did not record it.
    pub at: i64,
    /// The change.
    pub update: Update,
}

impl FromRow for LogEntry {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let body: String = row.column("body")?;
        let update = serde_json::from_str(&body).map_err(|error| unreadable("a thread's row", &error))?;
        Ok(Self { seq: row.column("seq")?, run: row.column("run")?, at: row.column("at")?, update })
    }
}

impl Db {
    /// Returns up to `limit` rows of a thread's log after a position, oldest first, only those of one run if given.
    pub async fn log_after(
        &self,
        thread: &ThreadId,
        run: Option<&RunId>,
        after: Seq,
        limit: i64,
    ) -> Result<Vec<LogEntry>> {
        let sql = "SELECT seq, run, at, body FROM log
            WHERE thread = $1 AND seq > $2 AND run = COALESCE($3, run) ORDER BY seq LIMIT $4";
        self.all(query(sql).bind(thread).bind(after).bind(run).bind(limit)).await
    }

    /// Returns up to `limit` rows of a thread's log before a position, newest first.
    pub async fn log_before(&self, thread: &ThreadId, before: Seq, limit: i64) -> Result<Vec<LogEntry>> {
        let sql = "SELECT seq, run, at, body FROM log
            WHERE thread = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3";
        self.all(query(sql).bind(thread).bind(before).bind(limit)).await
    }

    /// Returns the position of the newest row of a thread's log; 0 if there is none.
    pub async fn newest_row(&self, thread: &ThreadId) -> Result<Seq> {
        let sql = "SELECT COALESCE(MAX(seq), 0) FROM log WHERE thread = $1";
        self.one(query(sql).bind(thread)).await
    }

    /// Returns the state of a thread after a row of its log, and the position of the last row that was read, which is
    /// lower than `seq` if the log is shorter.
    pub async fn state_at(&self, thread: &ThreadId, seq: Seq) -> Result<(Seq, ThreadState)> {
        let thread = thread.clone();
        self.read_much(move |tx| {
            let (from, mut state) = super::log::snapshot_until(tx, &thread, seq)?;
            let sql = "SELECT seq, body FROM log WHERE thread = $1 AND seq > $2 AND seq <= $3 ORDER BY seq";
            let query = query(sql).bind(thread.as_str()).bind(from).bind(seq);
            let mut reached = from;
            let apply = |(seq, body): (Seq, String)| {
                state.apply(
                    serde_json::from_str(&body).map_err(|error| unreadable("a thread's row", &error))?,
                );
                reached = seq;
                Ok(())
            };
            query.each(tx, apply)?;
            Ok((reached, state))
        })
        .await
    }

    /// Returns the positions of the first and the last row written by a run.
    pub async fn span_of_run(&self, thread: &ThreadId, run: &RunId) -> Result<Option<(Seq, Seq)>> {
        let sql = "SELECT MIN(seq), MAX(seq) FROM log WHERE thread = $1 AND run = $2";
        let (first, last): (Option<Seq>, Option<Seq>) = self.one(query(sql).bind(thread).bind(run)).await?;
        Ok(first.zip(last))
    }
}
