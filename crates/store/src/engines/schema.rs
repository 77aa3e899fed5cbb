//! Brings a database to the shape that this program knows.
//!
//! Versions are counted from 1, one file each; a file that was released never changes again. There is
//! no way back: an older program refuses a newer database and changes nothing.

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
];

/// Applies the missing migrations, in one transaction. Of several processes that start at once, one does it and
/// the others wait.
pub(super) fn migrate(tx: &mut Tx<'_>) -> Result<()> {
    let engine = tx.engine();
    tx.run(engine.begin())?;
    if engine == DbEngine::Postgres {
        enter_schema(tx)?;
    }
    let found = version(tx)?;
    if engine == DbEngine::Postgres && found > 0 && found < newest_known() {
        // A process that works on the older shape would continue to write rows without the newer one's columns.
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

/// Locks out other instances and makes the schema `pudu`: the database may be shared, and `runs` is a
/// name that others use too.
fn enter_schema(tx: &mut Tx<'_>) -> Result<()> {
    query("SELECT pg_advisory_xact_lock(hashtext('pudu.schema'))").execute(tx)?;
    // Asked first, because IF NOT EXISTS wants the right to create even when there is nothing to do.
    if !query("SELECT 1 FROM pg_namespace WHERE nspname = 'pudu'").finds(tx)? {
        tx.run("CREATE SCHEMA pudu")?;
    }
    Ok(())
}

/// Returns the version found; refuses one that this program does not know.
fn version(tx: &mut Tx<'_>) -> Result<i64> {
    tx.run("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)")?;
    let found = query("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetch_one(tx)?;
    let known = newest_known();
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    Ok(found)
}

/// Returns the version that this program knows.
fn newest_known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}
