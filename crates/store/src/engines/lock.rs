//! The advisory lock of PostgreSQL under which a database is one process's alone.

use super::statement::{Tx, query};
use crate::{Result, StoreError};
use std::time::Duration;

/// The number of PostgreSQL's advisory lock for the claim; any number works that no other program uses.
pub(super) const LOCK_KEY: i64 = 0x7075_6475;
/// Time within which the lock of a killed process is expected to be released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two tries to have the lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The error of those who find the lock taken.
pub(super) const TAKEN: StoreError = StoreError::Conflict("another pudu works on this database");

/// Statement that takes the lock for as long as its session lives.
pub(super) const SESSION_LOCK: &str = "SELECT CASE WHEN pg_try_advisory_lock($1) THEN 1 ELSE 0 END";
/// Likewise, until its transaction ends.
pub(super) const TRANSACTION_LOCK: &str = "SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN 1 ELSE 0 END";

/// Takes the lock as soon as it is free.
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
