//! The advisory lock of PostgreSQL under which a database is one process's alone.

use crate::StoreError;
use sqlx::AnyConnection;
use std::time::Duration;

/// The number of PostgreSQL's advisory lock for the claim; any number works that no other program uses.
pub(crate) const LOCK_KEY: i64 = 0x7075_6475;
/// Time within which the lock of a killed process is expected to be released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two tries to have the lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The error of those who find the lock taken.
pub(crate) const TAKEN: StoreError = StoreError::Conflict("another pudu works on this database");

/// Statement that takes the lock for as long as its session lives.
pub(crate) const SESSION_LOCK: &str = "SELECT CASE WHEN pg_try_advisory_lock($1) THEN 1 ELSE 0 END";
/// Likewise, until its transaction ends.
const TRANSACTION_LOCK: &str = "SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN 1 ELSE 0 END";

/// Keeps other processes out until the transaction ends.
pub(crate) async fn lock_exclusively(tx: &mut AnyConnection) -> Result<(), StoreError> {
    wait_for_lock(tx, TRANSACTION_LOCK).await
}

/// Takes the lock as soon as it is free.
pub(crate) async fn wait_for_lock(
    connection: &mut AnyConnection,
    sql: &'static str,
) -> Result<(), StoreError> {
    for _ in 0..RELEASE_TIMEOUT.as_millis() / RETRY_INTERVAL.as_millis() {
        if lock(connection, sql).await? {
            return Ok(());
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    Err(TAKEN)
}

/// Takes the lock if it is free.
pub(crate) async fn lock(connection: &mut AnyConnection, sql: &'static str) -> Result<bool, StoreError> {
    let taken: i32 = sqlx::query_scalar(sql).bind(LOCK_KEY).fetch_one(connection).await?;
    Ok(taken == 1)
}
