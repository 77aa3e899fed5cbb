//! Memory of users and rooms: DeerFlow's `memory`, with the keys of its memory store in `backend_config`.
//!
//! In older files these keys are in `memory` itself. If a key is in both places, `backend_config` takes precedence.

use super::{
    channel::UnpairedPeople, model::ModelConfig, quantity::NumberUnit, raw::NodeValue, reader::Section,
};
use pudu_agent::{MemoryMode, MemoryRules};
use pudu_memory::{EvictionPolicy, MemoryOptions};
use std::time::Duration;

/// Rules for memory, before the model is looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryConfig {
    /// The rules; `None` if memory is off.
    pub rules: Option<MemoryRules>,
    /// Name of the model that reads conversations; the first model if `None`.
    pub model: Option<String>,
}

const EVICTION: &[(&str, EvictionPolicy)] =
    &[("confidence", EvictionPolicy::Confidence), ("hybrid-v1", EvictionPolicy::Hybrid)];

/// DeerFlow's names of memory stores, and whether memory is stored.
const MANAGERS: &[(&str, bool)] = &[("deermem", true), ("noop", false)];

/// DeerFlow's names of the modes of memory.
const MODES: &[(&str, MemoryMode)] = &[("middleware", MemoryMode::Middleware), ("tool", MemoryMode::Tool)];

/// Keys without effect: read positions are in the database, there is always an index, and users never share memory.
const UNUSED_KEYS: &[&str] = &[
    "fact_eviction_shadow_enabled",
    "manifest_filename",
    "patterns_dir",
    "prompts_dir",
    "retrieval_adapter",
    "storage_class",
    "strict_user_scope",
    "token_counting",
    "watermark_max_keys",
];

/// Reads the rules.
pub(super) fn read(top: &Section<'_>, models: &[ModelConfig], unpaired: UnpairedPeople) -> MemoryConfig {
    let section = top.section("memory").about("Memory about users and groups (docs/memory.md).");
    let backend =
        section.section("backend_config").about("Limits and thresholds of memory, under DeerFlow's keys.");
    section.note_unused(UNUSED_KEYS);
    backend.note_unused(UNUSED_KEYS);
    for place in [&section, &backend] {
        let path = place.entry("storage_path").map(|entry| &entry.node.value);
        let help = "remove it: memory is stored in the home folder, as in DeerFlow";
        match path {
            None => {}
            Some(NodeValue::Text(path)) if path.is_empty() => {}
            // Older files name the single file with all users' memory. Newer versions of DeerFlow ignore it, too.
            Some(NodeValue::Text(path)) if path.ends_with(".json") => {
                place.warn("storage_path", "memory is no longer in one file; this is ignored", help);
            }
            Some(_) => place.refuse("storage_path", "pudu stores memory only in its home folder", help),
        }
    }
    if backend.entry("model").is_some() {
        let help = "describe it under `models`, and name it in `memory.model_name`";
        backend.warn("model", "memory needs one of `models`", help);
        backend.section("model").ignore_rest();
    }
    settings! { section =>
        /// Enables memory: facts are learned from conversations and used in answers.
        enabled = flag().or(true);
        /// Access to memory: by pudu (middleware) or by the model with tools (tool).
        mode = choice(MODES).or(MemoryMode::Middleware);
        /// Memory store: deermem (DeerFlow's files) or noop (nothing is stored).
        kept as "manager_class" = choice(MANAGERS).or(true);
        /// Adds facts that match a question to the model's request.
        injection as "injection_enabled" = flag().or(true);
        /// Maximum time for extraction from waiting conversations at shutdown, in seconds; the rest is read after the next
        /// start.
        last_reading as "shutdown_flush_timeout_seconds" = span(NumberUnit::Seconds, 1..=300)
            .or(Duration::from_secs(30));
        /// Name of the model that extracts facts from conversations.
        model as "model_name" = model(models).eg("main").optional("the first of `models`");
    }
    let backend = backend.or_in(&section);
    settings! { backend =>
        /// Time without an answer after which memory reads a conversation, in seconds.
        debounce as "debounce_seconds" = span(NumberUnit::Seconds, 1..=300).or(Duration::from_secs(30));
        /// Maximum number of conversations that wait for extraction; beyond it one without a sign of personal facts is
        /// dropped; 0 sets no limit.
        max_waiting as "queue_max_depth" = number(0..=1_000_000).or(1_000);
    }
    let (shared_people, options) = (unpaired == UnpairedPeople::Shared, options(&backend));
    let rules = MemoryRules { mode, injection, debounce, max_waiting, last_reading, shared_people, options };
    MemoryConfig { rules: (enabled && kept).then_some(rules), model }
}

fn options(section: &Section<'_>) -> MemoryOptions {
    let usual = MemoryOptions::default();
    let [certain, fresh, used] = usual.eviction_weights;
    let [confirmed, accessed] = usual.eviction_half_lives;
    let (reserved, most) = usual.reserved_corrections;
    settings! { section =>
        /// Maximum wait for the lock shared with DeerFlow, in seconds.
        lock_timeout as "file_lock_timeout_seconds" = span(NumberUnit::Seconds, 1..=120)
            .or(Duration::from_secs(10));
        /// Maximum number of facts of one agent for one user; more are archived.
        max_facts = number(10..=500).or(usual.max_facts);
        /// Minimum confidence of a stored fact.
        min_confidence as "fact_confidence_threshold" = decimal(0.0..=1.0).or(usual.min_confidence);
        /// Order in which facts are archived: confidence (the lowest first) or hybrid-v1 (by confidence, freshness and use).
        eviction as "fact_eviction_policy" = choice(EVICTION).or(usual.eviction);
        /// Weight of confidence in hybrid-v1.
        certain as "eviction_confidence_weight" = decimal(0.0..=1.0).or(certain);
        /// Weight of freshness in hybrid-v1.
        fresh as "eviction_confirmation_weight" = decimal(0.0..=1.0).or(fresh);
        /// Weight of use in hybrid-v1.
        used as "eviction_access_weight" = decimal(0.0..=1.0).or(used);
        /// Days after which a confirmation counts half.
        confirmed as "eviction_confirmation_half_life_days" = days(1.0..=3650.0).or(confirmed);
        /// Days after which a use counts half.
        accessed as "eviction_access_half_life_days" = days(1.0..=3650.0).or(accessed);
        /// Share of the facts that is reserved for corrections.
        reserved as "eviction_correction_reserved_fraction" = decimal(0.0..=1.0).or(reserved);
        /// Maximum number of facts that are reserved for corrections.
        most as "eviction_correction_reserved_max" = number(0..=100).or(most);
        /// Maximum number of archived facts.
        max_audit_entries as "eviction_audit_max_entries" = number(0..=10_000).or(usual.max_audit_entries);
        /// Maximum size of the facts added to a question, in tokens.
        max_injection_tokens = amount(NumberUnit::Tokens, 100..=8_000).or(usual.max_injection_tokens);
        /// Categories that are used before all others.
        guaranteed_categories = names().or(usual.guaranteed_categories);
        /// Maximum size of those categories, in tokens.
        guaranteed_tokens as "guaranteed_token_budget" = amount(NumberUnit::Tokens, 50..=2_000)
            .or(usual.guaranteed_tokens);
        /// Shows old facts to the model for review.
        staleness_review as "staleness_review_enabled" = flag().or(usual.staleness_review);
        /// Age at which a fact is due for review, in days.
        staleness_days as "staleness_age_days" = amount(NumberUnit::Days, 30..=365).or(usual.staleness_days);
        /// Number of old facts from which a review happens.
        staleness_min as "staleness_min_candidates" = number(1..=50).or(usual.staleness_min);
        /// Maximum number of facts that one review removes.
        staleness_max_removals as "staleness_max_removals_per_cycle" = number(1..=50)
            .or(usual.staleness_max_removals);
        /// Categories that are never reviewed.
        staleness_protected as "staleness_protected_categories" = names().or(usual.staleness_protected);
        /// Maximum expected validity of a new fact, as a multiple of `staleness_age_days`.
        staleness_lifetimes as "staleness_max_lifetime_multiplier" = number(1..=100)
            .or(usual.staleness_lifetimes);
        /// Maximum expected validity after an extension, in days.
        max_extension_days as "staleness_max_extension_days" = amount(NumberUnit::Days, 90..=36_500)
            .or(usual.max_extension_days);
        /// Offers similar facts to the model for merging.
        consolidation as "consolidation_enabled" = flag().or(usual.consolidation);
        /// Number of facts of one category from which a merge is offered.
        consolidation_min as "consolidation_min_facts" = number(3..=30).or(usual.consolidation_min);
        /// Maximum number of merges by one answer.
        consolidation_max_groups as "consolidation_max_groups_per_cycle" = number(1..=10)
            .or(usual.consolidation_max_groups);
        /// Maximum number of facts merged into one.
        consolidation_max_sources = number(2..=20).or(usual.consolidation_max_sources);
    }
    MemoryOptions {
        lock_timeout,
        max_facts,
        min_confidence,
        eviction,
        eviction_weights: [certain, fresh, used],
        eviction_half_lives: [confirmed, accessed],
        reserved_corrections: (reserved, most),
        max_audit_entries,
        max_injection_tokens,
        guaranteed_categories,
        guaranteed_tokens,
        staleness_review,
        staleness_days,
        staleness_min,
        staleness_max_removals,
        staleness_protected,
        staleness_lifetimes,
        max_extension_days,
        consolidation,
        consolidation_min,
        consolidation_max_groups,
        consolidation_max_sources,
        ..MemoryOptions::default()
    }
}
