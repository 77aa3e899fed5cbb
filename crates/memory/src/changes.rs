//! Changes of a user's memory, and what became of them.

use crate::{
    document::MemoryDocument,
    fact::{AUTHOR, Fact, FactId},
    learnt::LearntMark,
    summary::SummaryKey,
    time::FactTime,
};

/// Reason why a fact gave way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupersedeReason {
    /// Something newer contradicts it, or the person took it back.
    Replaced,
    /// A review found it outdated.
    Stale,
    /// It was merged into another one.
    Consolidated,
    /// There were too many.
    Evicted,
}

impl SupersedeReason {
    /// Returns the word in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Replaced => "replaced",
            Self::Stale => "stale",
            Self::Consolidated => "consolidated",
            Self::Evicted => "evicted",
        }
    }
}

/// A fact that gives way. It is put aside, not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supersession {
    /// The fact.
    pub id: FactId,
    /// The fact that stands in its place.
    pub by: Option<FactId>,
    /// The reason.
    pub reason: SupersedeReason,
}

/// A fact that was put aside, as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct SupersededFact {
    /// The fact. Its unknown keys say when and why, too.
    pub fact: Fact,
    /// The fact that stands in its place.
    pub by: Option<FactId>,
    /// The moment when it gave way.
    pub at: Option<FactTime>,
    /// The reason, as the file has it.
    pub reason: String,
}

impl SupersededFact {
    /// Returns the platform's id of the person who said it, if that is known.
    #[must_use]
    pub fn author(&self) -> Option<&str> {
        self.fact.extra.get(AUTHOR)?.as_str()
    }
}

/// Changes of one agent's memory of one user, to be made together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// New texts of summaries.
    pub summaries: Vec<(SummaryKey, String)>,
    /// Facts that are new or different, whole.
    pub facts: Vec<Fact>,
    /// Facts that give way.
    pub superseded: Vec<Supersession>,
    /// Facts that are deleted for good.
    pub forgotten: Vec<FactId>,
    /// Whether no fact gives way to a new one, however many there are: those of an import.
    pub keeps_all: bool,
    /// The conversation that the changes come from, and how far it was read. It is noted with them, so that nobody makes
    /// them of the same words again.
    pub learnt: Option<LearntMark>,
}

impl Changes {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summaries.is_empty()
            && self.facts.is_empty()
            && self.superseded.is_empty()
            && self.forgotten.is_empty()
    }
}

/// A fact that gave way because there were too many. Its text is in the file that was put aside alone.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictedFact {
    /// The fact.
    pub id: FactId,
    /// Its category; a correction among them is worth telling the person.
    pub category: String,
    /// Its score.
    pub score: f64,
    /// Parts of the score, by DeerFlow's names.
    pub components: Vec<(&'static str, f64)>,
}

/// Changes as they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// Memory after the change.
    pub document: MemoryDocument,
    /// Facts that are new.
    pub added: Vec<FactId>,
    /// Facts that are different.
    pub changed: Vec<FactId>,
    /// New facts that were dropped, because the same was remembered already, each with the fact that says it.
    pub duplicates: Vec<(FactId, FactId)>,
    /// Facts that gave way, those for want of room among them: no longer to be found by a search.
    pub superseded: Vec<FactId>,
    /// Facts that gave way because there were too many.
    pub evicted: Vec<EvictedFact>,
    /// Facts that were deleted for good, with those that they had replaced.
    pub forgotten: Vec<FactId>,
}
