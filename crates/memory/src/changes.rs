//! Changes of a user's memory, and their results.

use crate::{
    document::MemoryDocument,
    fact::{AUTHOR, Fact, FactId},
    summary::SummaryKey,
    time::FactTime,
};

/// Reason why a fact was superseded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupersedeReason {
    /// Something newer contradicts it, or the person retracted it.
    Replaced,
    /// A review found it outdated.
    Stale,
    /// It was merged into another fact.
    Consolidated,
    /// There were too many facts.
    Evicted,
}

impl SupersedeReason {
    /// Returns the reason's name in files.
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

/// A fact to be superseded. Its file is moved, not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supersession {
    /// The fact.
    pub id: FactId,
    /// The fact that replaces it.
    pub by: Option<FactId>,
    /// The reason.
    pub reason: SupersedeReason,
}

/// A superseded fact.
#[derive(Clone, Debug, PartialEq)]
pub struct SupersededFact {
    /// The fact. Its unknown keys also contain the time and reason.
    pub fact: Fact,
    /// The fact that replaces it.
    pub by: Option<FactId>,
    /// Time when it was superseded.
    pub at: Option<FactTime>,
    /// The reason, as stored in the file.
    pub reason: String,
}

impl SupersededFact {
    /// Returns the platform's id of the fact's author, if it is known.
    #[must_use]
    pub fn author(&self) -> Option<&str> {
        self.fact.extra.get(AUTHOR)?.as_str()
    }
}

/// Changes of one agent's memory of one user, applied together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// New texts of summaries.
    pub summaries: Vec<(SummaryKey, String)>,
    /// New or changed facts, in full.
    pub facts: Vec<Fact>,
    /// Facts to be superseded.
    pub superseded: Vec<Supersession>,
    /// Facts that are deleted permanently.
    pub forgotten: Vec<FactId>,
    /// Whether to keep all facts, even if there are too many, as in an import.
    pub keeps_all: bool,
}

impl Changes {
    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summaries.is_empty()
            && self.facts.is_empty()
            && self.superseded.is_empty()
            && self.forgotten.is_empty()
    }
}

/// A fact that was superseded because there were too many. Its text is only in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictedFact {
    /// The fact.
    pub id: FactId,
    /// Its category. Users should learn of an evicted correction.
    pub category: String,
    /// Its score.
    pub score: f64,
    /// Parts of the score, by DeerFlow's names.
    pub components: Vec<(&'static str, f64)>,
}

/// Applied changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// Memory after the change.
    pub document: MemoryDocument,
    /// New facts.
    pub added: Vec<FactId>,
    /// Changed facts.
    pub changed: Vec<FactId>,
    /// New facts that were dropped as duplicates, each with the existing fact.
    pub duplicates: Vec<(FactId, FactId)>,
    /// Superseded facts, including evicted ones: searches must no longer find them.
    pub superseded: Vec<FactId>,
    /// Facts that were superseded because there were too many.
    pub evicted: Vec<EvictedFact>,
    /// Facts that were deleted permanently, including those that they had replaced.
    pub forgotten: Vec<FactId>,
}
