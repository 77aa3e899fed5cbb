//! Adds entries to the index and removes single entries.

use super::{
    MAX_RECALL_CHARS, RecallKind, RecallScope, key, sql, sql::RecallSql, storable, words::split_words,
};
use crate::{
    Db, Result, crash,
    engines::{Tx, query},
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of entries changed in one transaction.
const MAX_CHUNK_ENTRIES: usize = 128;
/// Confidences are stored as integers in millionths.
pub(super) const CONFIDENCE_PARTS: f64 = 1e6;

/// An entry to index.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallEntry {
    /// The memory to which it belongs.
    pub scope: RecallScope,
    /// Fact or turn.
    pub kind: RecallKind,
    /// The fact's or the message's id, unique in its scope and kind.
    pub doc: String,
    /// The thread that it comes from; empty if there is none. The entry is deleted when the thread is forgotten.
    pub thread: String,
    /// The author's name, which a search also matches.
    pub author: String,
    /// Time of the statement, in milliseconds since 1970.
    pub at: i64,
    /// Confidence, from 0 to 1.
    pub confidence: f64,
    /// Text to index and return, up to [`MAX_RECALL_CHARS`] characters.
    pub text: String,
}

impl Db {
    /// Indexes entries, each replacing an older one with the same scope, kind and id. They are stored in order, in
    /// several transactions, so some may be stored even if an error is returned. Indexing an entry twice changes
    /// nothing.
    pub async fn index(&self, entries: &[RecallEntry]) -> Result<()> {
        for chunk in entries.chunks(MAX_CHUNK_ENTRIES) {
            let rows: Vec<EntryRow> = chunk.iter().map(EntryRow::new).collect();
            self.write(&crash::RECALL_INDEX, move |tx| insert(tx, &rows)).await?;
        }
        Ok(())
    }

    /// Returns the indexed facts of a scope: their texts by id.
    pub async fn indexed_facts(&self, scope: &RecallScope) -> Result<HashMap<String, String>> {
        let scope = stored_scope(scope);
        self.read_much(move |tx| {
            let Some(scope) = known_scope(tx, &scope, RecallKind::Fact)? else {
                return Ok(HashMap::new());
            };
            let sql = "SELECT doc, text FROM recall_docs WHERE scope = $1";
            let rows: Vec<(String, String)> = query(sql).bind(scope).fetch_all(tx)?;
            Ok(rows.into_iter().collect())
        })
        .await
    }

    /// Removes entries of one scope and kind from the index by their ids. Unknown ids are not an error.
    pub async fn unindex(&self, scope: &RecallScope, kind: RecallKind, docs: &[String]) -> Result<()> {
        for chunk in docs.chunks(MAX_CHUNK_ENTRIES) {
            let docs: Vec<String> = chunk.iter().map(|doc| key(doc)).collect();
            let scope = stored_scope(scope);
            self.write(&crash::RECALL_UNINDEX, move |tx| {
                let Some(scope) = known_scope(tx, &scope, kind)? else { return Ok(()) };
                let (ids, mut change) = (ids_of(tx, scope, &docs)?, ScopeChange::default());
                // Removes duplicate ids.
                for id in ids.into_iter().collect::<BTreeSet<_>>() {
                    delete(tx, scope, id, &mut change)?;
                }
                change.store(tx, scope)
            })
            .await?;
        }
        Ok(())
    }
}

/// An entry with its words.
pub(super) struct EntryRow {
    entry: RecallEntry,
    words: Vec<String>,
}

impl EntryRow {
    pub(super) fn new(entry: &RecallEntry) -> Self {
        let text: String = entry.text.chars().take(MAX_RECALL_CHARS).collect();
        let author: String = entry.author.chars().take(MAX_RECALL_CHARS).collect();
        let mut found = split_words(&author);
        found.extend(split_words(&text));
        let confidence = if entry.confidence.is_nan() { 0.0 } else { entry.confidence.clamp(0.0, 1.0) };
        let entry = RecallEntry {
            scope: stored_scope(&entry.scope),
            kind: entry.kind,
            doc: key(&entry.doc),
            thread: key(&entry.thread),
            author: storable(&author),
            at: entry.at,
            confidence,
            text: storable(&text),
        };
        Self { entry, words: found }
    }
}

/// Returns a scope with its agent's name as it is stored.
pub(super) fn stored_scope(scope: &RecallScope) -> RecallScope {
    RecallScope { user: scope.user.clone(), agent: key(&scope.agent) }
}

/// A transaction's change of a scope's statistics.
#[derive(Default)]
pub(super) struct ScopeChange {
    docs: i64,
    words: i64,
    /// Change of the number of entries that contain each word.
    by_word: BTreeMap<String, i64>,
}

impl ScopeChange {
    fn count(&mut self, words: &[&str], sign: i64) {
        self.docs += sign;
        self.words += sign * i64::try_from(words.len()).unwrap_or(i64::MAX);
        for word in words.iter().collect::<BTreeSet<_>>() {
            *self.by_word.entry((*word).to_owned()).or_default() += sign;
        }
    }

    /// Writes the change.
    pub(super) fn store(self, tx: &mut Tx<'_>, scope: i64) -> Result<()> {
        let sql = "UPDATE recall_scopes SET docs = docs + $2, words = words + $3 WHERE id = $1";
        query(sql).bind(scope).bind(self.docs).bind(self.words).execute(tx)?;
        let changed: Vec<(String, i64)> = self.by_word.into_iter().filter(|(_, docs)| *docs != 0).collect();
        let fewer = changed.iter().any(|(_, docs)| *docs < 0);
        let list = serde_json::json!(changed).to_string();
        let sql = RecallSql::for_engine(tx.engine());
        query(sql.count_words).bind(scope).bind(&list).execute(tx)?;
        if fewer {
            query(sql.drop_words).bind(scope).bind(&list).execute(tx)?;
        }
        Ok(())
    }
}

pub(super) fn insert(tx: &mut Tx<'_>, rows: &[EntryRow]) -> Result<()> {
    let mut changes = BTreeMap::<i64, ScopeChange>::new();
    for row in rows {
        let scope = scope_id(tx, &row.entry.scope, row.entry.kind)?;
        let change = changes.entry(scope).or_default();
        let docs = std::slice::from_ref(&row.entry.doc);
        for id in ids_of(tx, scope, docs)? {
            delete(tx, scope, id, change)?;
        }
        add(tx, scope, row, change)?;
    }
    for (scope, change) in changes {
        change.store(tx, scope)?;
    }
    Ok(())
}

/// Returns the id of a scope, creating the scope if necessary.
fn scope_id(tx: &mut Tx<'_>, scope: &RecallScope, kind: RecallKind) -> Result<i64> {
    if let Some(id) = known_scope(tx, scope, kind)? {
        return Ok(id);
    }
    let sql = "INSERT INTO recall_scopes (user_id, agent, kind, docs, words) VALUES ($1, $2, $3, 0, 0) RETURNING id";
    query(sql).bind(scope.user.as_str()).bind(&scope.agent).bind(kind.as_str()).fetch_one(tx)
}

fn known_scope(tx: &mut Tx<'_>, scope: &RecallScope, kind: RecallKind) -> Result<Option<i64>> {
    let sql = "SELECT id FROM recall_scopes WHERE user_id = $1 AND agent = $2 AND kind = $3";
    query(sql).bind(scope.user.as_str()).bind(&scope.agent).bind(kind.as_str()).fetch_optional(tx)
}

fn ids_of(tx: &mut Tx<'_>, scope: i64, docs: &[String]) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    for doc in docs {
        let sql = "SELECT id FROM recall_docs WHERE scope = $1 AND doc = $2";
        ids.extend(query(sql).bind(scope).bind(doc).fetch_optional::<i64>(tx)?);
    }
    Ok(ids)
}

#[expect(clippy::cast_possible_truncation, reason = "a confidence is at most 1")]
fn add(tx: &mut Tx<'_>, scope: i64, row: &EntryRow, change: &mut ScopeChange) -> Result<()> {
    let (entry, sql) = (&row.entry, RecallSql::for_engine(tx.engine()));
    let confidence = (entry.confidence * CONFIDENCE_PARTS).round() as i64;
    let insert = query(sql.insert).bind(scope).bind(&entry.doc).bind(&entry.thread).bind(&entry.author);
    let id: i64 = insert.bind(entry.at).bind(confidence).bind(&entry.text).fetch_one(tx)?;
    let words: Vec<&str> = row.words.iter().map(String::as_str).collect();
    let bag = words.join(" ");
    let insert = query("INSERT INTO recall_bags (id, at, words) VALUES ($1, $2, $3)").bind(id).bind(entry.at);
    insert.bind(&bag).execute(tx)?;
    query(sql.add_words).bind(id).bind(&tokens(scope, &words)).execute(tx)?;
    change.count(&words, 1);
    Ok(())
}

/// Returns the words of an entry in the form of the full-text index.
fn tokens(scope: i64, words: &[&str]) -> String {
    words.iter().map(|word| sql::token(scope, word)).collect::<Vec<_>>().join(" ")
}

/// Deletes an entry, its words and their postings in the full-text index.
pub(super) fn delete(tx: &mut Tx<'_>, scope: i64, id: i64, change: &mut ScopeChange) -> Result<()> {
    let bag: String = query("SELECT words FROM recall_bags WHERE id = $1").bind(id).fetch_one(tx)?;
    let words: Vec<&str> = bag.split_whitespace().collect();
    if let Some(sql) = RecallSql::for_engine(tx.engine()).remove_words {
        query(sql).bind(id).bind(&tokens(scope, &words)).execute(tx)?;
    }
    query("DELETE FROM recall_bags WHERE id = $1").bind(id).execute(tx)?;
    query("DELETE FROM recall_docs WHERE id = $1").bind(id).execute(tx)?;
    change.count(&words, -1);
    Ok(())
}
