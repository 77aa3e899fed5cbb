//! The part of memory that a prompt shows. An answer may touch nothing else, and nothing that changed since.

use crate::{
    document::MemoryDocument,
    fact::{Fact, FactId},
    options::MemoryOptions,
    time::FactTime,
};
use std::collections::{BTreeMap, HashMap};

/// Facts shown to a model, and those that it is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedFacts {
    /// Every fact of the document, with its revision.
    pub shown: HashMap<FactId, u64>,
    /// Facts that are due for review. Empty if there are too few for one.
    pub stale: Vec<FactId>,
    /// Facts of one category each that may be merged.
    pub groups: Vec<Vec<FactId>>,
}

impl OfferedFacts {
    /// Works out what a prompt shows. `now` is in milliseconds since 1970.
    #[must_use]
    pub fn of(document: &MemoryDocument, options: &MemoryOptions, now: i64) -> Self {
        let now = FactTime::from_millis(now);
        Self {
            shown: document.facts.iter().map(|fact| (fact.id.clone(), fact.revision)).collect(),
            stale: stale(document, options, now),
            groups: groups(document, options),
        }
    }

    /// Whether a fact stands as it was shown.
    pub(super) fn stands(&self, fact: &Fact) -> bool {
        self.shown.get(&fact.id) == Some(&fact.revision)
    }
}

fn stale(document: &MemoryDocument, options: &MemoryOptions, now: FactTime) -> Vec<FactId> {
    if !options.staleness_review {
        return Vec::new();
    }
    let open = |fact: &&Fact| !options.staleness_protected.iter().any(|name| name == fact.category.name());
    let due = document.facts.iter().filter(open).filter(|fact| fact.is_stale(options.staleness_days, now));
    let due: Vec<FactId> = due.map(|fact| fact.id.clone()).collect();
    if due.len() >= options.staleness_min { due } else { Vec::new() }
}

fn groups(document: &MemoryDocument, options: &MemoryOptions) -> Vec<Vec<FactId>> {
    if !options.consolidation {
        return Vec::new();
    }
    let mut groups: BTreeMap<&str, Vec<FactId>> = BTreeMap::new();
    for fact in document.facts.iter().filter(|fact| fact.category.name() != "correction") {
        groups.entry(fact.category.label()).or_default().push(fact.id.clone());
    }
    let mut groups: Vec<Vec<FactId>> =
        groups.into_values().filter(|group| group.len() >= options.consolidation_min).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups.truncate(options.consolidation_max_groups);
    groups
}
