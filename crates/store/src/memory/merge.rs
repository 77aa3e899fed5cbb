//! Pending merges of one user's memory into another user's.
//!
//! The row is written in the transaction that links the users and is deleted with the last step. Every step can be
//! repeated, so a crash in between loses nothing. Deliberately absent: memory files, which do not belong to the store.

use crate::{
    Db, Result, crash,
    engines::{Tx, from_row, query},
};
use pudu_base::UserId;

/// A pending merge of one memory into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryMerge {
    /// The user whose memory is merged.
    pub source: UserId,
    /// The user who receives it.
    pub target: UserId,
}

from_row!(MemoryMerge { source, target });

impl Db {
    /// Returns the pending merges.
    pub async fn memory_merges(&self) -> Result<Vec<MemoryMerge>> {
        let sql = "SELECT source, target FROM memory_merges ORDER BY source";
        self.all(query(sql)).await
    }

    /// Records that a memory was merged. Its waiting conversations and read positions become the target's.
    pub async fn memory_merged(&self, merge: &MemoryMerge) -> Result<()> {
        let merge = merge.clone();
        self.write(&crash::MEMORY_MERGED, move |tx| merged(tx, &merge)).await
    }
}

/// Records that the source's memory must be merged, unless another identity still belongs to the source.
pub(crate) fn begin(tx: &mut Tx<'_>, source: &UserId, target: &UserId) -> Result<()> {
    // If the source's memory was off, the target's is switched off.
    let sql = "INSERT INTO memory_off (user_id) SELECT $2 FROM memory_off WHERE user_id = $1
        ON CONFLICT (user_id) DO NOTHING";
    let of = |sql: &'static str| query(sql).bind(source.as_str()).bind(target.as_str());
    of(sql).execute(tx)?;
    let others: i64 =
        query("SELECT COUNT(*) FROM identities WHERE user_id = $1").bind(source.as_str()).fetch_one(tx)?;
    if others > 0 || source == target {
        return Ok(());
    }
    // Pending merges into the source now lead to the target.
    of("UPDATE memory_merges SET target = $2 WHERE target = $1").execute(tx)?;
    query("DELETE FROM memory_merges WHERE source = target").execute(tx)?;
    let sql = "INSERT INTO memory_merges (source, target) VALUES ($1, $2)
        ON CONFLICT (source) DO UPDATE SET target = excluded.target";
    of(sql).execute(tx).map(drop)
}

/// Cancels the pending merge of a user's memory, because an identity belongs to that user again.
pub(crate) fn cancel(tx: &mut Tx<'_>, source: &UserId) -> Result<()> {
    let sql = "DELETE FROM memory_merges WHERE source = $1";
    query(sql).bind(source.as_str()).execute(tx).map(drop)
}

fn merged(tx: &mut Tx<'_>, MemoryMerge { source, target }: &MemoryMerge) -> Result<()> {
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
        query(sql).bind(source.as_str()).bind(target.as_str()).execute(tx)?;
    }
    Ok(())
}
