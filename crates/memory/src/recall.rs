//! Chooses search results for a prompt: the best facts and the best turns, half of the budget each.
//!
//! Hits that share too little with the question are omitted even if there is room, and so are turns that state
//! nothing. A question about the person requires a smaller share than one about the world. A thread does not get the
//! same line twice.
//!
//! Deliberately absent: the search itself (in the store), pinned facts, summaries, and the position of the text in a
//! prompt.

mod line;
mod question;

pub use line::RecallableFact;

use crate::{extract::states_something, text::count_tokens};
use jiff::tz::TimeZone;
use pudu_store::{RecallHit, RecallHits, RecallKind, RecallLimits};
use std::collections::{HashMap, HashSet};

/// Number of hits to request from the store: more than fit into a budget of 2,000 tokens.
pub const RECALL_LIMITS: RecallLimits = RecallLimits { facts: 60, turns: 60 };

/// Minimum share of the question's words in a hit, if the question is about the person: for a hit that matches one
/// word, and for one that matches more.
const MIN_SHARES_OF_OWN: (f64, f64) = (0.25, 0.1);
/// The same for any other question. The shares are higher because common words occur in every memory.
const MIN_SHARES: (f64, f64) = (0.6, 0.4);
/// Minimum score of a hit relative to the best of its kind.
const MIN_SHARE_OF_BEST: f64 = 0.05;

/// Identifies a fact or a turn that was added to a thread's prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecalledId {
    /// Fact or turn.
    pub kind: RecallKind,
    /// The fact's or the message's id.
    pub doc: String,
}

/// Token budget and other parameters of recall.
#[derive(Clone, Copy, Debug)]
pub struct RecallBudget<'b> {
    /// The question.
    pub question: &'b str,
    /// Total tokens of all lines, as counted by [`count_tokens`].
    pub tokens: usize,
    /// Items recalled for the thread before, and the messages that the thread already contains.
    pub given: &'b HashSet<RecalledId>,
    /// The time zone of the dates.
    pub zone: &'b TimeZone,
}

/// The recalled part of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecalledMemory {
    /// Lines of facts, best first, escaped for use between tags.
    pub facts: Vec<String>,
    /// Lines of turns, likewise.
    pub turns: Vec<String>,
    /// All items in the lines, facts first. They now count as recalled for the thread.
    pub ids: Vec<RecalledId>,
    /// Tokens of the lines.
    pub tokens: usize,
}

/// Chooses the recalled lines. `facts` is the current memory: a hit whose fact is not in it is omitted, and the line
/// shows the current text of the fact. Deterministic.
#[must_use]
pub fn choose_recalled(
    hits: &RecallHits,
    facts: &[RecallableFact<'_>],
    budget: &RecallBudget<'_>,
) -> RecalledMemory {
    let is_personal = question::is_personal(budget.question);
    // Every line must match a question about the world. For a question about the person, one matching line is enough.
    let fits = |hit: &&RecallHit| is_personal || answers(hit, is_personal);
    let facts_found = || hits.facts.iter().filter(fits);
    let turns_found = || hits.turns.iter().filter(|turn| states_something(&turn.text)).filter(fits);
    if !facts_found().chain(turns_found()).any(|hit| answers(hit, is_personal)) {
        return RecalledMemory::default();
    }
    let facts: HashMap<&str, &RecallableFact<'_>> = facts.iter().map(|fact| (fact.id, fact)).collect();
    let of_fact = |hit: &RecallHit| facts.get(hit.doc.as_str()).map(|fact| line::fact(fact));
    let of_turn = |hit: &RecallHit| Some(line::turn(hit, budget.zone));
    let mut facts = RecallSide::new(facts_found(), budget.given, of_fact);
    let mut turns = RecallSide::new(turns_found(), budget.given, of_turn);
    let mut left = budget.tokens;
    left -= facts.take(budget.tokens / 2);
    left -= turns.take(left);
    // Gives the tokens that turns did not use to facts.
    left -= facts.take(left);
    let ids = facts.taken.iter().chain(&turns.taken).map(|line| line.id.clone()).collect();
    RecalledMemory { facts: facts.lines(), turns: turns.lines(), ids, tokens: budget.tokens - left }
}

/// Whether a hit has enough in common with the question.
fn answers(hit: &RecallHit, is_personal: bool) -> bool {
    let (one, more) = if is_personal { MIN_SHARES_OF_OWN } else { MIN_SHARES };
    let least = match hit.matched {
        // A match of single characters is too little for a question about the world.
        0 if is_personal => one,
        0 => f64::INFINITY,
        1 => one,
        _ => more,
    };
    hit.named || hit.share >= least
}

/// A candidate line.
struct RecallLine {
    id: RecalledId,
    text: String,
    tokens: usize,
}

/// The lines of one kind, best first.
struct RecallSide {
    waiting: Vec<RecallLine>,
    taken: Vec<RecallLine>,
}

impl RecallSide {
    fn new<'h>(
        hits: impl Iterator<Item = &'h RecallHit> + Clone,
        given: &HashSet<RecalledId>,
        render: impl Fn(&RecallHit) -> Option<String>,
    ) -> Self {
        let best = hits.clone().map(|hit| hit.score).fold(0.0, f64::max);
        let mut seen = HashSet::new();
        let line = |hit: &RecallHit| {
            let id = RecalledId { kind: hit.kind, doc: hit.doc.clone() };
            // An entry that shares only stray characters with the question is used only if the question names its
            // author.
            let about = hit.share > 0.0 || hit.named;
            let fits = about && hit.score >= best * MIN_SHARE_OF_BEST && !given.contains(&id);
            let text = render(hit).filter(|_| fits)?;
            // Includes the line break.
            let tokens = count_tokens(&text) + 1;
            seen.insert(text.clone()).then_some(RecallLine { id, text, tokens })
        };
        Self { waiting: hits.filter_map(line).collect(), taken: Vec::new() }
    }

    /// Takes the best lines that fit, and returns their total tokens. A line that is too long is skipped.
    fn take(&mut self, room: usize) -> usize {
        let mut used = 0;
        for line in std::mem::take(&mut self.waiting) {
            if used + line.tokens <= room {
                used += line.tokens;
                self.taken.push(line);
            } else {
                self.waiting.push(line);
            }
        }
        used
    }

    fn lines(self) -> Vec<String> {
        self.taken.into_iter().map(|line| line.text).collect()
    }
}

#[cfg(test)]
mod tests;
