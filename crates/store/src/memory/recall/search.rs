//! Searches one scope.

use super::{
    RecallKind, RecallScope,
    index::{CONFIDENCE_PARTS, stored_scope},
    rank::{Bag, Fit, MAX_POSTINGS, Probe, ScopeStatistics},
    sql::{self, RecallSql},
    words::{is_faint, query_words, split_words as split},
};
use crate::{
    Db, Result,
    engines::{Tx, query},
};
use std::collections::HashMap;

/// Maximum number of hits of a kind.
const MAX_HITS: usize = 200;

/// Maximum number of hits of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecallLimits {
    /// Facts.
    pub facts: usize,
    /// Turns.
    pub turns: usize,
}

/// The hits for a question, the best of each kind first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecallHits {
    /// Facts.
    pub facts: Vec<RecallHit>,
    /// Turns.
    pub turns: Vec<RecallHit>,
}

/// An entry that matches a question.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallHit {
    /// Fact or turn.
    pub kind: RecallKind,
    /// The fact's or the message's id.
    pub doc: String,
    /// The thread that it comes from; empty if there is none.
    pub thread: String,
    /// The author's name.
    pub author: String,
    /// Time of the statement, in milliseconds since 1970.
    pub at: i64,
    /// Confidence, from 0 to 1.
    pub confidence: f64,
    /// Its text.
    pub text: String,
    /// BM25 score. Comparable only among hits of the same question and kind.
    pub score: f64,
    /// Weighted share of the question's words that it contains, from 0 to 1. Words in few entries weigh more, and words
    /// in no entry most. Comparable among hits of different questions.
    pub share: f64,
    /// Number of different words of the question that it contains, not counting single characters of longer words.
    pub matched: usize,
    /// Whether the question names its author.
    pub named: bool,
}

impl Db {
    /// Returns the entries of one scope that match a question best. Any text is valid: there is no query syntax, long
    /// texts are truncated, and a text without words finds nothing.
    pub async fn recall(
        &self,
        scope: &RecallScope,
        question: &str,
        limits: RecallLimits,
    ) -> Result<RecallHits> {
        let words = query_words(question);
        if words.is_empty() {
            return Ok(RecallHits::default());
        }
        let scope = stored_scope(scope);
        self.read_much(move |tx| search(tx, &scope, &words, limits)).await
    }
}

fn search(
    tx: &mut Tx<'_>,
    of: &RecallScope,
    question: &[String],
    limits: RecallLimits,
) -> Result<RecallHits> {
    let mut hits = RecallHits::default();
    let sql = "SELECT id, kind, docs, words FROM recall_scopes WHERE user_id = $1 AND agent = $2";
    let scopes = query(sql).bind(&of.user).bind(&of.agent);
    let scopes: Vec<(i64, String, i64, i64)> = scopes.fetch_all(tx)?;
    for (scope, name, docs, words) in scopes {
        let Some(kind) = RecallKind::ALL.into_iter().find(|kind| kind.as_str() == name) else { continue };
        let (target, limit) = match kind {
            RecallKind::Fact => (&mut hits.facts, limits.facts),
            RecallKind::Turn => (&mut hits.turns, limits.turns),
        };
        if limit == 0 {
            continue;
        }
        let asked = counts(tx, question, scope)?;
        let statistics = ScopeStatistics { docs, words, asked };
        let fits = best(tx, scope, &statistics, limit.min(MAX_HITS))?;
        *target = read_hits(tx, scope, kind, &fits)?;
        // A single character of a name does not count as the name.
        let is_in_question = |word: &String| !is_faint(word) && question.contains(word);
        target.iter_mut().for_each(|hit| hit.named = split(&hit.author).iter().any(is_in_question));
    }
    Ok(hits)
}

/// Returns the question's words, each with the number of a scope's entries that contain it.
fn counts(tx: &mut Tx<'_>, question: &[String], scope: i64) -> Result<Vec<(String, i64)>> {
    let rows = query(RecallSql::for_engine(tx.engine()).counts);
    let list = list(question);
    let known: HashMap<String, i64> = rows.bind(scope).bind(&list).fetch_all(tx)?.into_iter().collect();
    let count = |word: &String| known.get(word).copied().unwrap_or(0);
    Ok(question.iter().map(|word| (word.clone(), count(word))).collect())
}

/// Returns a list in the JSON form that the statements of recall expect: each element is a row.
fn list<T: Clone + Into<serde_json::Value>>(elements: &[T]) -> String {
    let rows = elements.iter().map(|element| serde_json::Value::Array(vec![element.clone().into()]));
    serde_json::Value::Array(rows.collect()).to_string()
}

fn best(tx: &mut Tx<'_>, scope: i64, statistics: &ScopeStatistics, limit: usize) -> Result<Vec<Fit>> {
    let probes = statistics.probes();
    if probes.is_empty() {
        return Ok(Vec::new());
    }
    let found = matches(tx, scope, statistics, &probes)?;
    let ids = statistics.worth_scoring(&found);
    let bags = query(RecallSql::for_engine(tx.engine()).bags);
    let bags = bags.bind(&list(&ids)).fetch_one::<String>(tx)?;
    let bags: Vec<Bag<'_>> = bags.split('|').filter_map(bag).collect();
    let mut fits = statistics.rank(&bags);
    fits.truncate(limit);
    Ok(fits)
}

/// Looks probes up in the full-text index.
fn matches<'p>(
    tx: &mut Tx<'_>,
    scope: i64,
    statistics: &ScopeStatistics,
    probes: &'p [Probe],
) -> Result<Vec<(&'p Probe, Vec<i64>)>> {
    let word = |place: &usize| statistics.asked.get(*place).map(|(word, _)| word.as_str());
    let engine = tx.engine();
    let expression =
        |probe: &Probe| sql::all_of(engine, scope, &probe.iter().filter_map(word).collect::<Vec<_>>());
    let expressions: Vec<String> = probes.iter().map(expression).collect();
    let rows = query(RecallSql::for_engine(tx.engine()).matches);
    let rows = rows.bind(&list(&expressions)).bind(MAX_POSTINGS).fetch_all(tx)?;
    let of_row = |(place, ids): (i64, String)| {
        let probe = probes.get(usize::try_from(place).ok()?)?;
        Some((probe, ids.split(' ').filter_map(|id| id.parse().ok()).collect()))
    };
    Ok(rows.into_iter().filter_map(of_row).collect())
}

/// Parses a line of id, time and words.
fn bag(line: &str) -> Option<Bag<'_>> {
    let (id, rest) = line.split_once(' ')?;
    let (at, words) = rest.split_once(' ')?;
    Some(Bag { id: id.parse().ok()?, at: at.parse().ok()?, words })
}

type EntryColumns = (i64, String, String, String, i64, i64, String);

/// Reads the scored entries, in their order.
fn read_hits(tx: &mut Tx<'_>, scope: i64, kind: RecallKind, fits: &[Fit]) -> Result<Vec<RecallHit>> {
    let ids: Vec<i64> = fits.iter().map(|fit| fit.id).collect();
    let rows = query(RecallSql::for_engine(tx.engine()).docs).bind(&list(&ids)).bind(scope).fetch_all(tx)?;
    let mut rows: HashMap<i64, EntryColumns> =
        rows.into_iter().map(|row: EntryColumns| (row.0, row)).collect();
    // Skips entries that were deleted in the meantime.
    Ok(fits.iter().filter_map(|fit| Some(hit(kind, rows.remove(&fit.id)?, *fit))).collect())
}

#[expect(clippy::cast_precision_loss, reason = "at most a million")]
fn hit(kind: RecallKind, row: EntryColumns, fit: Fit) -> RecallHit {
    let (_, doc, thread, author, at, confidence, text) = row;
    let confidence = confidence as f64 / CONFIDENCE_PARTS;
    let Fit { score, share, matched, .. } = fit;
    RecallHit { kind, doc, thread, author, at, confidence, text, score, share, matched, named: false }
}
