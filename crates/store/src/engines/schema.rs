//! Migrates a database to the newest schema version.
//!
//! Versions are counted from 1, with one file each. Released files never change. There are no downgrades: an older
//! program refuses a newer database without changing it.

use super::{
    DbEngine,
    lock::{TRANSACTION_LOCK, wait_for_lock},
    statement::{Tx, query},
};
use crate::{Result, StoreError, clock};

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/1.sql"),
    include_str!("../../migrations/2.sql"),
    include_str!("../../migrations/3.sql"),
    include_str!("../../migrations/4.sql"),
    include_str!("../../migrations/5.sql"),
    include_str!("../../migrations/6.sql"),
    include_str!("../../migrations/7.sql"),
    include_str!("../../migrations/8.sql"),
    include_str!("../../migrations/9.sql"),
    include_str!("../../migrations/10.sql"),
    include_str!("../../migrations/11.sql"),
    include_str!("../../migrations/12.sql"),
    include_str!("../../migrations/13.sql"),
    include_str!("../../migrations/14.sql"),
    include_str!("../../migrations/15.sql"),
    include_str!("../../migrations/16.sql"),
    include_str!("../../migrations/17.sql"),
    include_str!("../../migrations/18.sql"),
    include_str!("../../migrations/19.sql"),
    include_str!("../../migrations/20.sql"),
    include_str!("../../migrations/21.sql"),
    include_str!("../../migrations/22.sql"),
    include_str!("../../migrations/23.sql"),
    include_str!("../../migrations/24.sql"),
    include_str!("../../migrations/25.sql"),
    include_str!("../../migrations/26.sql"),
    include_str!("../../migrations/27.sql"),
];

/// Applies the missing migrations in one transaction. If several processes start at once, one migrates and the
/// others wait.
pub(super) fn migrate(tx: &mut Tx<'_>) -> Result<()> {
    let engine = tx.engine();
    tx.run(engine.begin())?;
    if engine == DbEngine::Postgres {
        enter_schema(tx)?;
    }
    let found = version(tx)?;
    if engine == DbEngine::Postgres && found > 0 && found < newest_known() {
        // A running process with the older schema would continue to write rows without the new columns.
        wait_for_lock(tx, TRANSACTION_LOCK)?;
    }
    for (number, sql) in (1..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        let sql = sql.replace("ITEM_ID", engine.item_id()).replace("NOW_MS", &clock::now().to_string());
        let sql = sql.replace("ROW_KEY", engine.row_key()).replace("RECALL_INDEX", engine.recall_index());
        tx.run(&sql)?;
        query("INSERT INTO schema_version (version) VALUES ($1)").bind(number).execute(tx)?;
    }
    tx.run("COMMIT")
}

/// Locks out other instances and creates the schema `pudu`. The database may be shared with other programs, which may
/// also use table names such as `runs`.
fn enter_schema(tx: &mut Tx<'_>) -> Result<()> {
    query("SELECT pg_advisory_xact_lock(hashtext('pudu.schema'))").execute(tx)?;
    // Checked first, because IF NOT EXISTS requires the privilege to create even if the schema exists.
    if !query("SELECT 1 FROM pg_namespace WHERE nspname = 'pudu'").finds(tx)? {
        tx.run("CREATE SCHEMA pudu")?;
    }
    Ok(())
}

/// Returns the version of the database, or an error if this program does not know it.
fn version(tx: &mut Tx<'_>) -> Result<i64> {
    tx.run("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)")?;
    let found = query("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetch_one(tx)?;
    let known = newest_known();
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    Ok(found)
}

/// Returns the newest version that this program knows.
fn newest_known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}
