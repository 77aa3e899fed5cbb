//! Limits and weights of memory. The defaults are DeerFlow's.

use std::time::Duration;

/// Policy for evicting facts when there are too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// Evicts the least certain facts.
    #[default]
    Confidence,
    /// Evicts the facts with the lowest score of certainty, freshness and use (DeerFlow's `hybrid-v1`).
    Hybrid,
}

impl EvictionPolicy {
    /// Returns DeerFlow's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Confidence => "confidence",
            Self::Hybrid => "hybrid-v1",
        }
    }
}

/// Limits and weights of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryOptions {
    /// Maximum time to wait for the lock.
    pub lock_timeout: Duration,
    /// Maximum number of facts of one agent for one user.
    pub max_facts: usize,
    /// Maximum length of a new fact, in characters.
    pub max_content_chars: usize,
    /// Maximum length of a new summary, in characters.
    pub max_summary_chars: usize,
    /// Maximum number of superseded facts that are kept for one agent and user.
    pub max_superseded: usize,
    /// Minimum confidence of an extracted fact.
    pub min_confidence: f64,
    /// Eviction policy.
    pub eviction: EvictionPolicy,
    /// Weights of confidence, freshness and use in a score.
    pub eviction_weights: [f64; 3],
    /// Half-lives of confirmations and of uses, in days.
    pub eviction_half_lives: [f64; 2],
    /// Share of `max_facts` that is reserved for corrections, and its maximum number of facts.
    pub reserved_corrections: (f64, usize),
    /// Maximum number of entries in the record of evictions.
    pub max_audit_entries: usize,
    /// Budget of the injected text, in tokens.
    pub max_injection_tokens: usize,
    /// Categories that are injected before all others.
    pub guaranteed_categories: Vec<String>,
    /// Budget of those categories, in tokens.
    pub guaranteed_tokens: usize,
    /// Maximum number of facts that are injected for every question.
    pub max_pinned: usize,
    /// Whether old facts are shown to the model for review.
    pub staleness_review: bool,
    /// Default age at which a fact is due for review, in days.
    pub staleness_days: u32,
    /// Minimum number of facts due for review that triggers a review.
    pub staleness_min: usize,
    /// Maximum number of facts that one review removes.
    pub staleness_max_removals: usize,
    /// Categories that are never reviewed.
    pub staleness_protected: Vec<String>,
    /// Maximum expected validity of a new fact, as a multiple of `staleness_days`.
    pub staleness_lifetimes: u32,
    /// Maximum expected validity after an extension, in days.
    pub max_extension_days: u32,
    /// Whether similar facts are offered to the model for merging.
    pub consolidation: bool,
    /// Minimum number of facts in one category to offer them for merging.
    pub consolidation_min: usize,
    /// Maximum number of merges in one answer.
    pub consolidation_max_groups: usize,
    /// Maximum number of facts merged into one.
    pub consolidation_max_sources: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        let correction = || vec!["correction".to_owned()];
        Self {
            lock_timeout: Duration::from_secs(10),
            max_facts: 100,
            max_content_chars: 2_000,
            max_summary_chars: 4_000,
            max_superseded: 200,
            min_confidence: 0.7,
            eviction: EvictionPolicy::Confidence,
            eviction_weights: [0.65, 0.25, 0.10],
            eviction_half_lives: [90.0, 30.0],
            reserved_corrections: (0.10, 10),
            max_audit_entries: 200,
            max_injection_tokens: 2_000,
            guaranteed_categories: correction(),
            guaranteed_tokens: 500,
            max_pinned: 15,
            staleness_review: true,
            staleness_days: 90,
            staleness_min: 3,
            staleness_max_removals: 10,
            staleness_protected: correction(),
            staleness_lifetimes: 20,
            max_extension_days: 3_650,
            consolidation: false,
            consolidation_min: 8,
            consolidation_max_groups: 3,
            consolidation_max_sources: 8,
        }
    }
}
