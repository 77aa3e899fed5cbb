//! Exclusive claim on the database.
//!
//! A SQLite file is covered by the lock on the home folder. On a server, the claim consists of an advisory lock, which
//! ends with its session, and the name of the last process that held it. A lost session is replaced if no other process
//! has claimed the database in the meantime: this process survives a restart of the server, but ends if another daemon
//! has taken over.

use super::{
    lock::{LOCK_KEY, SESSION_LOCK, TAKEN, lock, wait_for_lock},
    postgres::{self, PgSession},
    statement::{Tx, query},
};
use crate::{Db, DbLocation, PostgresUrl, Result, StoreError};
use sqlx::Connection;
use std::time::Duration;

/// Interval between two checks of the claim's session.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Timeout of a check. The session counts as lost if it expires.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
const PID: &str = "SELECT pg_backend_pid()";

/// Exclusive use of the database, released on drop.
pub struct Claim {
    session: Option<LockSession>,
}

/// The session on the server that holds the lock.
struct LockSession {
    session: Option<PgSession>,
    url: PostgresUrl,
    /// PostgreSQL backend PID of the session.
    pid: i64,
    /// The name of this process.
    owner: String,
}

impl Db {
    /// Claims the database for this process. Claims by other processes fail with a `Conflict` until this one ends.
    pub async fn claim(&self) -> Result<Claim> {
        let DbLocation::Postgres(url) = self.location() else {
            self.release_learnings().await?;
            return Ok(Claim { session: None });
        };
        if self.is_claimed() {
            return Err(TAKEN);
        }
        let owner = format!("{:016x}", fastrand::u64(..));
        let (url, name) = (url.clone(), owner.clone());
        let (session, claimed) = postgres::session(&url).await?.run(move |tx| claim(tx, &name)).await;
        let pid = claimed?;
        self.claimed_as(&owner);
        self.release_learnings().await?;
        Ok(Claim { session: Some(LockSession { session, url, pid, owner }) })
    }

    /// Returns a `Conflict` if a process has claimed the database. Does not claim it.
    pub async fn check_unclaimed(&self) -> Result<()> {
        let DbLocation::Postgres(url) = self.location() else { return Ok(()) };
        let (_, locked) = postgres::session(url).await?.run(|tx| wait_for_lock(tx, SESSION_LOCK)).await;
        locked
    }
}

/// Takes the lock and stores the owner's name. Returns the session's pid on the server.
fn claim(tx: &mut Tx<'_>, owner: &str) -> Result<i64> {
    wait_for_lock(tx, SESSION_LOCK)?;
    let sql = "INSERT INTO owner (id, name) VALUES (1, $1)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name";
    query(sql).bind(owner).execute(tx)?;
    query(PID).fetch_one(tx)
}

impl Claim {
    /// Keeps the claim alive. Returns an error once the claim is lost for good, for example because another process has
    /// claimed the database.
    pub async fn keep(&mut self) -> StoreError {
        let Some(session) = &mut self.session else { return std::future::pending().await };
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if session.is_alive().await {
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
    async fn is_alive(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        matches!(tokio::time::timeout(CHECK_TIMEOUT, session.connection.ping()).await, Ok(Ok(())))
    }

    /// Claims the database in a new session. Retries without limit while the server is unavailable.
    async fn renew(&mut self) -> Result<()> {
        loop {
            match tokio::time::timeout(CHECK_TIMEOUT, self.try_renew()).await {
                Ok(Ok(true)) => return Ok(()),
                Ok(Err(error)) if !error.is_outage() => return Err(error),
                _ => tokio::time::sleep(CHECK_INTERVAL / 5).await,
            }
        }
    }

    /// Returns `false` while the lost session still holds the lock.
    async fn try_renew(&mut self) -> Result<bool> {
        let (owner, lost) = (self.owner.clone(), self.pid);
        let (session, renewed) =
            postgres::session(&self.url).await?.run(move |tx| renew(tx, &owner, lost)).await;
        let Some(pid) = renewed? else { return Ok(false) };
        (self.session, self.pid) = (session, pid);
        Ok(true)
    }
}

/// Takes the lock. Returns the session's pid, or `None` while the lost session still holds the lock.
fn renew(tx: &mut Tx<'_>, owner: &str, lost: i64) -> Result<Option<i64>> {
    let is_locked = lock(tx, SESSION_LOCK)?;
    let found: Option<String> = query("SELECT name FROM owner WHERE id = 1").fetch_optional(tx)?;
    if found.as_deref() != Some(owner) {
        return Err(TAKEN);
    }
    if is_locked {
        return query(PID).fetch_one(tx).map(Some);
    }
    // The pid may have been reused by now. A session that still holds this lock is the lost one.
    let terminate = "SELECT CASE WHEN pg_terminate_backend(pid) THEN 1 ELSE 0 END FROM pg_locks
        WHERE locktype = 'advisory' AND classid = 0 AND objid = $1 AND pid = $2";
    query(terminate).bind(LOCK_KEY).bind(lost).execute(tx)?;
    Ok(None)
}
