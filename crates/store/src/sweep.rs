//! Deletes expired rows in small transactions, so that no caller waits long.

use crate::{Db, Result, clock, crash, engines::query, spending};

const HOUR: i64 = 60 * 60 * 1000;
const DAY: i64 = 24 * HOUR;

/// How long a done event is recognised, in milliseconds. At least 12 hours, because platforms redeliver for hours.
pub const KEEP_DONE: i64 = DAY;
/// How long a delivered turn is kept, in milliseconds.
pub const KEEP_TURNS: i64 = 7 * DAY;
/// How long a turn that was given up is kept for inspection, in milliseconds.
pub const KEEP_PARKED: i64 = 30 * DAY;
/// How long the conversation of a message is known, in milliseconds.
pub const KEEP_MESSAGES: i64 = 30 * DAY;

/// How long the spending of runs is kept, in milliseconds: a little more than a year.
const KEEP_SPENDING: i64 = 400 * DAY;

const _: () = assert!(KEEP_DONE >= 12 * HOUR);

/// Maximum number of rows deleted in one transaction.
pub(crate) const CHUNK: i64 = 500;

const DELETE_DONE: &str = "DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE done < $1 LIMIT $2)";
const DELIVERED: &str = "DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE delivered < $1 LIMIT $2)";
const PARKED: &str = "DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE parked < $1 LIMIT $2)";
const MESSAGES: &str = "DELETE FROM messages WHERE (account, chat, message) IN
    (SELECT account, chat, message FROM messages WHERE at < $1 LIMIT $2)";

/// Numbers of rows that a sweep deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Done events.
    pub items: u64,
    /// Settled turns.
    pub turns: u64,
    /// Known messages.
    pub messages: u64,
}

impl Db {
    /// Deletes rows beyond their retention time. That of threads and the audit is set by the operator and applied
    /// elsewhere.
    pub async fn sweep(&self, now: i64) -> Result<Swept> {
        let items = self.drop_older(DELETE_DONE, now - KEEP_DONE).await?;
        let delivered = self.drop_older(DELIVERED, now - KEEP_TURNS).await?;
        let parked = self.drop_older(PARKED, now - KEEP_PARKED).await?;
        let messages = self.drop_older(MESSAGES, now - KEEP_MESSAGES).await?;
        self.drop_older(spending::spent_before(), clock::day(now - KEEP_SPENDING)).await?;
        let (counters, day) = spending::made_before(now);
        self.drop_older(counters, day).await?;
        self.purge_forgotten().await?;
        Ok(Swept { items, turns: delivered + parked, messages })
    }

    async fn drop_older(&self, sql: &'static str, limit: i64) -> Result<u64> {
        let mut dropped = 0;
        loop {
            let rows = self.execute(&crash::SWEEP, query(sql).bind(limit).bind(CHUNK)).await?;
            dropped += rows;
            if rows < CHUNK.unsigned_abs() {
                return Ok(dropped);
            }
        }
    }
}
