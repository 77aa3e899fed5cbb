//! Outcome of a transaction whose connection was lost.
//!
//! If a server becomes unreachable during a commit, the commit may or may not have happened. If it has, running the
//! jobs again would report a new event as a duplicate, or a conflict on an unchanged thread. PostgreSQL can be asked
//! for the outcome later.

use super::statement::{Tx, query};
use crate::{Result, StoreError};
use std::time::Duration;

/// Interval between two checks of a transaction that is still in progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A transaction that has begun.
pub(crate) struct Transaction {
    id: i64,
    /// The server's pid of its session.
    pid: i64,
}

impl Transaction {
    /// Returns the current transaction of a connection, and the name of the process that has claimed the database. No
    /// other process can claim it before the transaction ends.
    pub(crate) fn current(tx: &mut Tx<'_>) -> Result<(Self, Option<String>)> {
        let sql = "SELECT txid_current(), pg_backend_pid(), (SELECT name FROM owner WHERE id = 1 FOR SHARE)";
        let (id, pid, owner) = query(sql).fetch_one(tx)?;
        Ok((Self { id, pid }, owner))
    }

    /// Returns whether it was committed. A transaction in progress is terminated, because its connection is lost and
    /// its locks would block others.
    pub(crate) fn was_committed(&self, tx: &mut Tx<'_>) -> Result<bool> {
        loop {
            let status = query("SELECT COALESCE(txid_status($1), 'aborted')").bind(self.id);
            let status: String = status.fetch_one(tx)?;
            if status != "in progress" {
                return Ok(status == "committed");
            }
            // The pid may have been reused by another session by now; the transaction id cannot.
            let end = "SELECT CASE WHEN pg_terminate_backend(pid) THEN 1 ELSE 0 END FROM pg_stat_activity
                WHERE pid = $1 AND CAST(CAST(backend_xid AS TEXT) AS BIGINT) = $2 % 4294967296";
            query(end).bind(self.pid).bind(self.id).execute(tx)?;
            tx.pause(POLL_INTERVAL)?;
        }
    }
}

/// Reason why a batch was not committed.
pub(crate) enum CommitError {
    /// The job at this index failed.
    Job(usize, StoreError),
    /// The database failed, independently of the jobs.
    Database(StoreError),
}

impl CommitError {
    pub(crate) fn error(&self) -> &StoreError {
        match self {
            Self::Job(_, error) | Self::Database(error) => error,
        }
    }

    /// Returns whether the transaction was rolled back, so that the session can be reused.
    pub(crate) fn is_rolled_back(&self) -> bool {
        matches!(self, Self::Job(_, error) if !error.is_outage())
    }
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        Self::Database(error)
    }
}
