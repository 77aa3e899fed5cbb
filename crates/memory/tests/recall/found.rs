//! Asks the questions of a corpus and counts whose evidence is in what would be told.

use crate::{
    chinese::CHINESE,
    corpus::{Conversation, Fact, Hop, Language, Question, Turn, conversation},
    english::ENGLISH,
};
use jiff::tz::TimeZone;
use pudu_base::UserId;
use pudu_memory::{FactTime, RECALL_LIMITS, RecallBudget, RecallableFact, choose_recalled, count_tokens};
use pudu_store::{Db, RecallEntry, RecallHits, RecallKind, RecallScope};
use std::collections::HashSet;

pub(crate) const AGENT: &str = "__default__";
const SEED: u64 = 20_261_101;

/// The ways to choose what is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// DeerFlow's: of the newest 100 facts the surest.
    Surest,
    Facts,
    Turns,
    Half,
}

/// Counts over questions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) asked: usize,
    pub(crate) some: usize,
    pub(crate) all: usize,
}

impl Share {
    pub(crate) fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.some += other.some;
        self.all += other.all;
    }

    /// Returns the shares with some and with all of the evidence, in percent.
    pub(crate) fn percent(self) -> (f64, f64) {
        let of = |count: usize| 100.0 * count as f64 / self.asked.max(1) as f64;
        (of(self.some), of(self.all))
    }
}

/// A conversation, the scope in which it is kept, and its language.
pub(crate) struct Kept {
    pub(crate) scope: RecallScope,
    pub(crate) chinese: bool,
    pub(crate) made: Conversation,
}

pub(crate) fn language(chinese: bool) -> &'static Language {
    if chinese { &CHINESE } else { &ENGLISH }
}

pub(crate) fn scope(user: &str) -> RecallScope {
    RecallScope { user: UserId::from_raw(user).unwrap(), agent: AGENT.into() }
}

/// Makes conversations of both languages, so many of each, and indexes each for a user of its own.
pub(crate) async fn keep(db: &Db, each: usize) -> Vec<Kept> {
    let mut all = Vec::new();
    for number in 0..2 * each {
        let chinese = number % 2 == 1;
        let made = conversation(language(chinese), number / 2, SEED + number as u64);
        let scope = scope(&format!("user-{number}"));
        db.index(&entries(&scope, &made)).await.unwrap();
        all.push(Kept { scope, chinese, made });
    }
    all
}

pub(crate) fn entries(scope: &RecallScope, made: &Conversation) -> Vec<RecallEntry> {
    let turn = |turn: &Turn| RecallEntry {
        scope: scope.clone(),
        kind: RecallKind::Turn,
        doc: turn.id.clone(),
        thread: turn.thread.clone(),
        author: turn.author.into(),
        at: turn.at,
        confidence: 1.0,
        text: turn.text.clone(),
    };
    let fact = |fact: &Fact| RecallEntry {
        scope: scope.clone(),
        kind: RecallKind::Fact,
        doc: fact.id.clone(),
        thread: String::new(),
        author: fact.author.into(),
        at: fact.at,
        confidence: fact.confidence,
        text: fact.text.clone(),
    };
    made.turns.iter().map(turn).chain(made.facts.iter().map(fact)).collect()
}

/// Asks all questions of a conversation.
pub(crate) async fn ask(db: &Db, kept: &Kept, way: Way, tokens: usize, hop: Option<Hop>) -> Share {
    let mut share = Share::default();
    for question in kept.made.questions.iter().filter(|question| hop.is_none_or(|hop| question.hop == hop)) {
        let told = told(db, kept, question, way, tokens).await;
        let found = question.evidence.iter().filter(|piece| piece.iter().any(|id| told.contains(id))).count();
        let (some, all) = (found > 0, found == question.evidence.len());
        share.add(Share { asked: 1, some: some.into(), all: all.into() });
    }
    share
}

async fn told(db: &Db, kept: &Kept, question: &Question, way: Way, tokens: usize) -> HashSet<String> {
    if way == Way::Surest {
        return surest(&kept.made.facts, tokens);
    }
    let mut hits = db.recall(&kept.scope, &question.text, RECALL_LIMITS).await.unwrap();
    match way {
        Way::Facts => hits.turns.clear(),
        Way::Turns => hits.facts.clear(),
        Way::Surest | Way::Half => {}
    }
    chosen(&kept.made.facts, &question.text, &hits, tokens).into_iter().collect()
}

/// Returns the ids of what any question brings.
pub(crate) async fn told_for(db: &Db, kept: &Kept, question: &str, tokens: usize) -> Vec<String> {
    let hits = db.recall(&kept.scope, question, RECALL_LIMITS).await.unwrap();
    chosen(&kept.made.facts, question, &hits, tokens)
}

/// Returns the ids of what is told.
pub(crate) fn chosen(facts: &[Fact], question: &str, hits: &RecallHits, tokens: usize) -> Vec<String> {
    let facts: Vec<_> = facts.iter().map(shown).collect();
    let budget = RecallBudget { question, tokens, given: &HashSet::new(), zone: &TimeZone::UTC };
    choose_recalled(hits, &facts, &budget).ids.into_iter().map(|id| id.doc).collect()
}

fn shown(fact: &Fact) -> RecallableFact<'_> {
    RecallableFact {
        id: &fact.id,
        category: "context",
        confidence: fact.confidence,
        text: &fact.text,
        at: FactTime::default(),
        author: None,
    }
}

/// DeerFlow's way: a store of 100 facts, the surest first, until one does not fit.
fn surest(facts: &[Fact], tokens: usize) -> HashSet<String> {
    let mut newest: Vec<&Fact> = facts.iter().rev().take(100).collect();
    newest.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let mut used = 0;
    let fits = |fact: &&&Fact| {
        used += count_tokens(&format!("- [context | {:.2}] {}", fact.confidence, fact.text)) + 1;
        used <= tokens
    };
    newest.iter().take_while(fits).map(|fact| fact.id.clone()).collect()
}
