//! Moves the turns of one user to another user of the same person. Each entry is indexed again, because words are
//! indexed with their scope's number.

use super::{
    RecallEntry, RecallKind, RecallScope,
    index::{CONFIDENCE_PARTS, EntryRow, ScopeChange, delete, insert},
};
use crate::{
    Db, Result, crash,
    engines::{Tx, query},
};
use pudu_base::UserId;
use std::collections::BTreeMap;

/// Maximum number of entries moved in one transaction.
const MAX_CHUNK_ENTRIES: i64 = 128;

impl Db {
    /// Moves all turns of the source user to the target user, and deletes the source's facts. Repeating it changes
    /// nothing.
    pub async fn move_turns(&self, source: &UserId, target: &UserId) -> Result<()> {
        loop {
            let (from, to) = (source.clone(), target.clone());
            let work = self.write(&crash::RECALL_MOVE, move |tx| part(tx, &from, &to));
            if work.await? < MAX_CHUNK_ENTRIES {
                return self.forget_user(source).await;
            }
        }
    }
}

/// Moves some entries and returns how many.
fn part(tx: &mut Tx<'_>, source: &UserId, target: &UserId) -> Result<i64> {
    let sql = "SELECT docs.id, docs.scope, scopes.agent FROM recall_docs docs JOIN recall_scopes scopes
        ON docs.scope = scopes.id WHERE scopes.user_id = $1 AND scopes.kind = 'turn' LIMIT $2";
    let found = query(sql).bind(source.as_str()).bind(MAX_CHUNK_ENTRIES);
    let found: Vec<(i64, i64, String)> = found.fetch_all(tx)?;
    let (mut changes, mut rows) = (BTreeMap::<i64, ScopeChange>::new(), Vec::new());
    for (id, scope, agent) in &found {
        let scope_of = RecallScope { user: target.clone(), agent: agent.clone() };
        rows.push(EntryRow::new(&entry(tx, *id, scope_of)?));
        delete(tx, *scope, *id, changes.entry(*scope).or_default())?;
    }
    for (scope, change) in changes {
        change.store(tx, scope)?;
    }
    insert(tx, &rows)?;
    Ok(i64::try_from(found.len()).unwrap_or(MAX_CHUNK_ENTRIES))
}

fn entry(tx: &mut Tx<'_>, id: i64, scope: RecallScope) -> Result<RecallEntry> {
    let sql = "SELECT doc, thread, author FROM recall_docs WHERE id = $1";
    let (doc, thread, author): (String, String, String) = query(sql).bind(id).fetch_one(tx)?;
    let sql = "SELECT at, confidence, text FROM recall_docs WHERE id = $1";
    let (at, confidence, text): (i64, i64, String) = query(sql).bind(id).fetch_one(tx)?;
    #[expect(clippy::cast_precision_loss, reason = "at most a million")]
    let confidence = confidence as f64 / CONFIDENCE_PARTS;
    Ok(RecallEntry { scope, kind: RecallKind::Turn, doc, thread, author, at, confidence, text })
}
