//! Chooses search results for a prompt: the best facts and the best turns, half of the budget each.
//!
//! A hit that shares too little with the question is left out, however much room there is, and so is a turn that only
//! asks. A question about the person needs less in common with memory than one about the world. A thread does not get
//! the same line twice.
//!
//! Deliberately absent: the search itself (the store's), pinned facts, summaries, and the place of the text in a
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

/// Minimum share of a question about the person in a hit, with one of its words and with more.
const MIN_SHARES_OF_OWN: (f64, f64) = (0.25, 0.1);
/// The same for any other question: higher, because common words are in every memory.
const MIN_SHARES: (f64, f64) = (0.6, 0.4);
/// Minimum score of a hit relative to the best of its kind.
const MIN_SHARE_OF_BEST: f64 = 0.05;

/// Identifies a fact or a turn that was given to a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecalledId {
    /// Fact or turn.
    pub kind: RecallKind,
    /// The fact's or the message's id.
    pub doc: String,
}

/// Budget of recall, and its parameters.
#[derive(Clone, Copy, Debug)]
pub struct RecallBudget<'b> {
    /// The question.
    pub question: &'b str,
    /// Total tokens of all lines, as counted by [`count_tokens`].
    pub tokens: usize,
    /// Items that the thread was given before, and the messages that it contains anyway.
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
    /// All items in the lines, facts first: they now count as given to the thread.
    pub ids: Vec<RecalledId>,
    /// Tokens of the lines.
    pub tokens: usize,
}

/// Chooses the recalled lines. `facts` are the current memory: a hit without a current fact is omitted, and the text is
/// the fact's own. The same arguments give the same result.
#[must_use]
pub fn choose_recalled(
    hits: &RecallHits,
    facts: &[RecallableFact<'_>],
    budget: &RecallBudget<'_>,
) -> RecalledMemory {
    let is_personal = question::is_personal(budget.question);
    // For a question about the world each line has to answer it; for one about the person, one has to.
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
    // The tokens that turns left unused.
    left -= facts.take(left);
    let ids = facts.taken.iter().chain(&turns.taken).map(|line| line.id.clone()).collect();
    RecalledMemory { facts: facts.lines(), turns: turns.lines(), ids, tokens: budget.tokens - left }
}

/// Whether a hit shows that the question is about this memory at all.
fn answers(hit: &RecallHit, is_personal: bool) -> bool {
    let (one, more) = if is_personal { MIN_SHARES_OF_OWN } else { MIN_SHARES };
    let least = match hit.matched {
        // A single character is too little for a question about the world.
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

    /// Takes the best lines that fit, and returns their tokens. A line that is too long is skipped.
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
