//! Asks the questions of a corpus, and counts those whose evidence is recalled.

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

/// Methods of choosing entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// DeerFlow's method: the most certain of the newest 100 facts.
    MostCertain,
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

/// A conversation, its scope and its language.
pub(crate) struct Indexed {
    pub(crate) scope: RecallScope,
    pub(crate) chinese: bool,
    pub(crate) conversation: Conversation,
}

pub(crate) fn language(chinese: bool) -> &'static Language {
    if chinese { &CHINESE } else { &ENGLISH }
}

pub(crate) fn scope(user: &str) -> RecallScope {
    RecallScope { user: UserId::from_raw(user).unwrap(), agent: AGENT.into() }
}

/// Generates `each` conversations in both languages, and indexes each for its own user.
pub(crate) async fn index_conversations(db: &Db, each: usize) -> Vec<Indexed> {
    let mut all = Vec::new();
    for number in 0..2 * each {
        let chinese = number % 2 == 1;
        let conversation = conversation(language(chinese), number / 2, SEED + number as u64);
        let scope = scope(&format!("user-{number}"));
        db.index(&entries(&scope, &conversation)).await.unwrap();
        all.push(Indexed { scope, chinese, conversation });
    }
    all
}

pub(crate) fn entries(scope: &RecallScope, conversation: &Conversation) -> Vec<RecallEntry> {
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
    conversation.turns.iter().map(turn).chain(conversation.facts.iter().map(fact)).collect()
}

/// Asks all questions of a conversation.
pub(crate) async fn ask(
    db: &Db,
    indexed: &Indexed,
    method: Method,
    tokens: usize,
    hop: Option<Hop>,
) -> Share {
    let mut share = Share::default();
    for question in
        indexed.conversation.questions.iter().filter(|question| hop.is_none_or(|hop| question.hop == hop))
    {
        let recalled_ids = recalled_ids(db, indexed, question, method, tokens).await;
        let found =
            question.evidence.iter().filter(|piece| piece.iter().any(|id| recalled_ids.contains(id))).count();
        let (some, all) = (found > 0, found == question.evidence.len());
        share.add(Share { asked: 1, some: some.into(), all: all.into() });
    }
    share
}

async fn recalled_ids(
    db: &Db,
    indexed: &Indexed,
    question: &Question,
    method: Method,
    tokens: usize,
) -> HashSet<String> {
    if method == Method::MostCertain {
        return most_certain(&indexed.conversation.facts, tokens);
    }
    let mut hits = db.recall(&indexed.scope, &question.text, RECALL_LIMITS).await.unwrap();
    match method {
        Method::Facts => hits.turns.clear(),
        Method::Turns => hits.facts.clear(),
        Method::MostCertain | Method::Half => {}
    }
    choose(&indexed.conversation.facts, &question.text, &hits, tokens).into_iter().collect()
}

/// Returns the ids of the entries that any question recalls.
pub(crate) async fn recall(db: &Db, indexed: &Indexed, question: &str, tokens: usize) -> Vec<String> {
    let hits = db.recall(&indexed.scope, question, RECALL_LIMITS).await.unwrap();
    choose(&indexed.conversation.facts, question, &hits, tokens)
}

/// Returns the ids of the chosen entries.
pub(crate) fn choose(facts: &[Fact], question: &str, hits: &RecallHits, tokens: usize) -> Vec<String> {
    let facts: Vec<_> = facts.iter().map(recallable).collect();
    let budget = RecallBudget { question, tokens, given: &HashSet::new(), zone: &TimeZone::UTC };
    choose_recalled(hits, &facts, &budget).ids.into_iter().map(|id| id.doc).collect()
}

fn recallable(fact: &Fact) -> RecallableFact<'_> {
    RecallableFact {
        id: &fact.id,
        category: "context",
        confidence: fact.confidence,
        text: &fact.text,
        at: FactTime::default(),
        author: None,
    }
}

/// DeerFlow's method: of at most 100 facts the most certain first, until one does not fit.
fn most_certain(facts: &[Fact], tokens: usize) -> HashSet<String> {
    let mut newest: Vec<&Fact> = facts.iter().rev().take(100).collect();
    newest.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let mut used = 0;
    let fits = |fact: &&&Fact| {
        used += count_tokens(&format!("- [context | {:.2}] {}", fact.confidence, fact.text)) + 1;
        used <= tokens
    };
    newest.iter().take_while(fits).map(|fact| fact.id.clone()).collect()
}
