//! Users who became another one, until their memory is merged into the other's.
//!
//! The row is written with the join itself and is deleted with the last step, so that a crash in between loses nothing:
//! every step can be repeated. Deliberately absent: the files of memory, which are not the store's.

use crate::{
    Db, StoreError, crash,
    statement::{Tx, query},
};
use pudu_base::UserId;

/// A memory that is to be merged into another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryMerge {
    /// The user whose memory it was.
    pub source: UserId,
    /// The user whose memory it becomes.
    pub target: UserId,
}

impl Db {
    /// Returns the memories that are to be merged.
    pub async fn memory_merges(&self) -> Result<Vec<MemoryMerge>, StoreError> {
        self.read((), |(), tx| Box::pin(merges(tx))).await
    }

    /// Notes that a memory was merged: the conversations that wait for it, and up to where they were read, are the other
    /// user's from now on.
    pub async fn memory_merged(&self, merge: &MemoryMerge) -> Result<(), StoreError> {
        self.write(&crash::MEMORY_MERGED, merge.clone(), |merge, tx| Box::pin(merged(tx, merge))).await
    }
}

async fn merges(tx: &mut Tx<'_>) -> Result<Vec<MemoryMerge>, StoreError> {
    let sql = "SELECT source, target FROM memory_merges ORDER BY source";
    let rows: Vec<(String, String)> = query(sql).fetch_all(tx).await?;
    let id = |text: &str| UserId::from_raw(text).map_err(|error| StoreError::Corrupt(error.to_string()));
    rows.iter().map(|(source, target)| Ok(MemoryMerge { source: id(source)?, target: id(target)? })).collect()
}

/// Records that the memory of a user who became another one is to be merged, unless another person is still that user.
pub(crate) async fn begin(tx: &mut Tx<'_>, source: &UserId, target: &UserId) -> Result<(), StoreError> {
    // Memory that was switched off stays off.
    let sql = "INSERT INTO memory_off (user_id) SELECT $2 FROM memory_off WHERE user_id = $1
        ON CONFLICT (user_id) DO NOTHING";
    let of = |sql: &'static str| query(sql).bind(source.as_str()).bind(target.as_str());
    of(sql).execute(tx).await?;
    let others: i64 = query("SELECT COUNT(*) FROM identities WHERE user_id = $1")
        .bind(source.as_str())
        .fetch_one(tx)
        .await?;
    if others > 0 || source == target {
        return Ok(());
    }
    // Pending merges into the source now lead to the target.
    of("UPDATE memory_merges SET target = $2 WHERE target = $1").execute(tx).await?;
    query("DELETE FROM memory_merges WHERE source = target").execute(tx).await?;
    let sql = "INSERT INTO memory_merges (source, target) VALUES ($1, $2)
        ON CONFLICT (source) DO UPDATE SET target = excluded.target";
    of(sql).execute(tx).await.map(drop)
}

/// Cancels the merge of a user's memory: a person is that user again.
pub(crate) async fn cancel(tx: &mut Tx<'_>, source: &UserId) -> Result<(), StoreError> {
    let sql = "DELETE FROM memory_merges WHERE source = $1";
    query(sql).bind(source.as_str()).execute(tx).await.map(drop)
}

async fn merged(tx: &mut Tx<'_>, MemoryMerge { source, target }: &MemoryMerge) -> Result<(), StoreError> {
    const MOVES: [&str; 7] = [
        "UPDATE learnings SET spender = $2 WHERE spender = $1",
        "UPDATE learnings SET first = (SELECT other.first FROM learnings other WHERE other.user_id = $1
            AND other.agent = learnings.agent AND other.thread = learnings.thread) WHERE user_id = $2 AND EXISTS
            (SELECT 1 FROM learnings other WHERE other.user_id = $1 AND other.agent = learnings.agent
            AND other.thread = learnings.thread)",
        "UPDATE learnings SET user_id = $2, reader = '', reads_until = 0 WHERE user_id = $1 AND NOT EXISTS
            (SELECT 1 FROM learnings other WHERE other.user_id = $2 AND other.agent = learnings.agent
            AND other.thread = learnings.thread)",
        "DELETE FROM learnings WHERE user_id = $1 AND $1 <> $2",
        "UPDATE learnt SET user_id = $2 WHERE user_id = $1 AND NOT EXISTS
            (SELECT 1 FROM learnt other WHERE other.user_id = $2 AND other.agent = learnt.agent
            AND other.thread = learnt.thread)",
        "DELETE FROM learnt WHERE user_id = $1 AND $1 <> $2",
        "DELETE FROM memory_merges WHERE source = $1 AND target = $2",
    ];
    for sql in MOVES {
        query(sql).bind(source.as_str()).bind(target.as_str()).execute(tx).await?;
    }
    Ok(())
}
