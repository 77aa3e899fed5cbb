//! The claim: a database is one process's alone.
//!
//! A SQLite file is locked with the folder that it lies in. On a server the claim is an advisory lock, which ends with
//! its session, and the name of the process that had it last. A lost session is replaced if no other process
//! had the database meanwhile: a server that restarts costs nothing, another daemon ends this one.

use crate::{
    Db, DbLocation, StoreError,
    engine::DbEngine,
    lock::{LOCK_KEY, SESSION_LOCK, TAKEN, lock, wait_for_lock},
    pools,
};
use sqlx::AnyConnection;
use std::time::Duration;

/// The pause between two looks whether the claim still holds.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// A look that takes longer has lost the session.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// A database that is one process's alone as long as this lives.
pub struct Claim {
    session: Option<LockSession>,
}

/// The session on a server that has the lock.
struct LockSession {
    connection: AnyConnection,
    location: DbLocation,
    /// The server's number of the session.
    pid: i32,
    /// This process.
    owner: String,
}

impl Db {
    /// Takes the database for this process: another process that asks gets a `Conflict` until this one is gone.
    pub async fn claim(&self) -> Result<Claim, StoreError> {
        if self.engine() != DbEngine::Postgres {
            self.release_learnings().await?;
            return Ok(Claim { session: None });
        }
        if self.is_claimed() {
            return Err(TAKEN);
        }
        let mut connection = locked(self.location()).await?;
        let owner = format!("{:016x}", fastrand::u64(..));
        let sql = "INSERT INTO owner (id, name) VALUES (1, $1)
            ON CONFLICT (id) DO UPDATE SET name = excluded.name";
        sqlx::query(sql).bind(&owner).execute(&mut connection).await?;
        self.claimed_as(&owner);
        let pid = pid(&mut connection).await?;
        self.release_learnings().await?;
        let session = LockSession { connection, location: self.location().clone(), pid, owner };
        Ok(Claim { session: Some(session) })
    }

    /// Returns a `Conflict` if a process has claimed the database. Takes nothing.
    pub async fn check_unclaimed(&self) -> Result<(), StoreError> {
        if self.engine() == DbEngine::Postgres {
            locked(self.location()).await?;
        }
        Ok(())
    }
}

impl Claim {
    /// Keeps the claim; returns when another process has it.
    pub async fn keep(&mut self) -> StoreError {
        let Some(session) = &mut self.session else { return std::future::pending().await };
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if session.is_well().await {
                continue;
            }
            tracing::warn!("lost the session that claims the database; claiming it again");
            match session.renew().await {
                Ok(()) => tracing::info!("reclaimed the database"),
                Err(error) => return error,
            }
        }
    }
}

impl LockSession {
    async fn is_well(&mut self) -> bool {
        let look = sqlx::query("SELECT 1").execute(&mut self.connection);
        matches!(tokio::time::timeout(CHECK_TIMEOUT, look).await, Ok(Ok(_)))
    }

    /// Claims the database in a new session, however long the server has to be waited for.
    async fn renew(&mut self) -> Result<(), StoreError> {
        loop {
            let renewed = tokio::time::timeout(CHECK_TIMEOUT, self.try_renew()).await;
            match renewed {
                Ok(Ok(Some(connection))) => {
                    self.connection = connection;
                    return Ok(());
                }
                Ok(Err(error)) if !error.is_outage() => return Err(error),
                _ => tokio::time::sleep(CHECK_INTERVAL / 5).await,
            }
        }
    }

    /// Returns `None` while the session that was lost still has the lock.
    async fn try_renew(&mut self) -> Result<Option<AnyConnection>, StoreError> {
        let mut connection = pools::session(&self.location).await?;
        let locked = lock(&mut connection, SESSION_LOCK).await?;
        let owner: Option<String> =
            sqlx::query_scalar("SELECT name FROM owner WHERE id = 1").fetch_optional(&mut connection).await?;
        if owner.as_ref() != Some(&self.owner) {
            return Err(TAKEN);
        }
        if locked {
            self.pid = pid(&mut connection).await?;
            return Ok(Some(connection));
        }
        // Its number may be another session's by now: one that holds this lock is its own.
        let end = "SELECT CASE WHEN pg_terminate_backend(pid) THEN 1 ELSE 0 END FROM pg_locks
            WHERE locktype = 'advisory' AND classid = 0 AND objid = $1 AND pid = $2";
        sqlx::query(end).bind(LOCK_KEY).bind(self.pid).execute(&mut connection).await?;
        Ok(None)
    }
}

/// Opens a session that has the lock.
async fn locked(location: &DbLocation) -> Result<AnyConnection, StoreError> {
    let mut connection = pools::session(location).await?;
    wait_for_lock(&mut connection, SESSION_LOCK).await?;
    Ok(connection)
}

async fn pid(connection: &mut AnyConnection) -> Result<i32, StoreError> {
    Ok(sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await?)
}
