//! PostgreSQL's advisory lock, which gives one process exclusive use of a database.

use super::statement::{Tx, query};
use crate::{Result, StoreError};
use std::time::Duration;

/// Key of the advisory lock for the claim. Any number works that no other program uses.
pub(super) const LOCK_KEY: i64 = 0x7075_6475;
/// How long to wait for the release of a killed process's lock.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two tries to take the lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Error for a lock that another process holds.
pub(super) const TAKEN: StoreError = StoreError::Conflict("another pudu uses this database");

/// Statement that takes the lock until the session ends.
pub(super) const SESSION_LOCK: &str = "SELECT CASE WHEN pg_try_advisory_lock($1) THEN 1 ELSE 0 END";
/// Statement that takes the lock until the transaction ends.
pub(super) const TRANSACTION_LOCK: &str = "SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN 1 ELSE 0 END";

/// Waits for the lock and takes it.
pub(super) fn wait_for_lock(tx: &mut Tx<'_>, sql: &'static str) -> Result<()> {
    for _ in 0..RELEASE_TIMEOUT.as_millis() / RETRY_INTERVAL.as_millis() {
        if lock(tx, sql)? {
            return Ok(());
        }
        tx.pause(RETRY_INTERVAL)?;
    }
    Err(TAKEN)
}

/// Takes the lock if it is free.
pub(super) fn lock(tx: &mut Tx<'_>, sql: &'static str) -> Result<bool> {
    query(sql).bind(LOCK_KEY).fetch_one(tx)
}
