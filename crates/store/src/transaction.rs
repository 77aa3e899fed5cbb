//! Outcome of a transaction whose connection was lost.
//!
//! A server that goes away during a commit may have made it, or not. Running the jobs again would then report
//! an unseen event as a duplicate, or a conflict on a thread that was not moved. PostgreSQL remembers the
//! outcome.

use crate::StoreError;
use sqlx::AnyConnection;
use std::time::Duration;

/// The pause between two checks of a transaction that is still in progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A transaction that has begun.
pub(crate) struct Transaction {
    id: i64,
    /// The server's number of the session that made it.
    pid: i32,
}

impl Transaction {
    /// Returns the transaction of a connection, and the process that has claimed the database: no other process claims
    /// it before the transaction ends.
    pub(crate) async fn current(
        connection: &mut AnyConnection,
    ) -> Result<(Self, Option<String>), StoreError> {
        let sql = "SELECT txid_current(), pg_backend_pid(), (SELECT name FROM owner WHERE id = 1 FOR SHARE)";
        let (id, pid, owner) = sqlx::query_as(sql).fetch_one(connection).await?;
        Ok((Self { id, pid }, owner))
    }

    /// Returns whether it was committed. A transaction in progress is ended: its connection is lost, and
    /// others would wait for its locks.
    pub(crate) async fn was_committed(&self, connection: &mut AnyConnection) -> Result<bool, StoreError> {
        loop {
            let sql = "SELECT COALESCE(txid_status($1), 'aborted')";
            let status: String = sqlx::query_scalar(sql).bind(self.id).fetch_one(&mut *connection).await?;
            if status != "in progress" {
                return Ok(status == "committed");
            }
            // The session's number may be another's by now, its transaction cannot.
            let end = "SELECT CASE WHEN pg_terminate_backend(pid) THEN 1 ELSE 0 END FROM pg_stat_activity
                WHERE pid = $1 AND CAST(CAST(backend_xid AS TEXT) AS BIGINT) = $2 % 4294967296";
            sqlx::query(end).bind(self.pid).bind(self.id).execute(&mut *connection).await?;
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
