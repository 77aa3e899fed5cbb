//! Memory of people and rooms: DeerFlow's `memory`, with the keys of its own memory in `backend_config`.
//!
//! Older files have those keys in `memory` itself; where a key is in both places, `backend_config` counts.

use super::{
    channel::UnpairedPeople, model::ModelConfig, model_name, quantity::NumberUnit, raw::NodeValue,
    reader::Section,
};
use pudu_client::{
    MemoryMode, MemoryRules,
    memories::{EvictionPolicy, MemoryOptions},
};
use std::time::Duration;

/// Rules for memory, before the model is looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryConfig {
    /// The rules; nothing is remembered if `None`.
    pub rules: Option<MemoryRules>,
    /// Name of the model that reads conversations; the first one if none.
    pub model: Option<String>,
}

const EVICTION: &[(&str, EvictionPolicy)] =
    &[("confidence", EvictionPolicy::Confidence), ("hybrid-v1", EvictionPolicy::Hybrid)];

/// Keepers of memory, by DeerFlow's names.
const MANAGERS: &[(&str, bool)] = &[("deermem", true), ("noop", false)];

/// How memory is used, by DeerFlow's names.
const MODES: &[(&str, MemoryMode)] = &[("middleware", MemoryMode::Middleware), ("tool", MemoryMode::Tool)];

/// Keys that mean nothing here: how far conversations were read is in the store, an index is always there, and users
/// never share.
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
    let section = top.section("memory");
    let backend = section.section("backend_config");
    section.note_unused(UNUSED_KEYS);
    backend.note_unused(UNUSED_KEYS);
    for place in [&section, &backend] {
        let path = place.entry("storage_path").map(|entry| &entry.node.value);
        let help = "leave it out: memory is in the home, as DeerFlow keeps it there";
        match path {
            None => {}
            Some(NodeValue::Text(path)) if path.is_empty() => {}
            // Older files name the one file that held all users' memory; newer versions of DeerFlow ignore it, too.
            Some(NodeValue::Text(path)) if path.ends_with(".json") => {
                place.warn("storage_path", "memory is not in one file any more: this is passed over", help);
            }
            Some(_) => place.refuse("storage_path", "pudu keeps memory nowhere else than in its home", help),
        }
    }
    if backend.entry("model").is_some() {
        let help = "describe it under `models`, and name it in `memory.model_name`";
        backend.warn(
            "model",
            "memory has no model of its own here: one of `models` reads conversations",
            help,
        );
        backend.section("model").ignore_rest();
    }
    let mode = section.choice("mode", MODES).or(MemoryMode::Middleware);
    let enabled = section.flag("enabled").or(true);
    let kept = section.choice("manager_class", MANAGERS).or(true);
    let injection = section.flag("injection_enabled").or(true);
    let model = model_name::named(&section, "model_name", models, "the first of `models`");
    let place = |key: &str| match section.entry(key).is_some() && backend.entry(key).is_none() {
        true => &section,
        false => &backend,
    };
    let debounce =
        place("debounce_seconds").amount("debounce_seconds", NumberUnit::Seconds, 1..=300_u64).or(30);
    let max_waiting = place("queue_max_depth").number("queue_max_depth", 0..=1_000_000_u32).or(1_000);
    let last = section.amount("shutdown_flush_timeout_seconds", NumberUnit::Seconds, 1..=300_u64).or(30);
    let rules = MemoryRules {
        mode,
        injection,
        debounce: Duration::from_secs(debounce),
        max_waiting,
        last_reading: Duration::from_secs(last),
        shared_people: unpaired == UnpairedPeople::Shared,
        options: options(place),
    };
    MemoryConfig { rules: (enabled && kept).then_some(rules), model }
}

fn options<'s, 'r: 's>(place: impl Fn(&str) -> &'s Section<'r>) -> MemoryOptions {
    let usual = MemoryOptions::default();
    let count = |key: &'static str, range: std::ops::RangeInclusive<u32>, default: usize| {
        place(key).number(key, range).or(u32::try_from(default).unwrap_or(u32::MAX)) as usize
    };
    let tokens = |key: &'static str, range: std::ops::RangeInclusive<u32>, default: usize| {
        place(key).amount(key, NumberUnit::Tokens, range).or(u32::try_from(default).unwrap_or(u32::MAX))
            as usize
    };
    let days = |key: &'static str, range: std::ops::RangeInclusive<u32>, default: u32| {
        place(key).amount(key, NumberUnit::Days, range).or(default)
    };
    let share = |key: &'static str, default: f64| place(key).decimal(key, 0.0..=1.0).or(default);
    let half_life = |key: &'static str, default: f64| place(key).days(key, 1.0..=3650.0).or(default);
    let flag = |key: &'static str, default: bool| place(key).flag(key).or(default);
    let names = |key: &'static str, default: Vec<String>| place(key).names(key).or(default);
    let [certain, fresh, used] = usual.eviction_weights;
    let [confirmed, accessed] = usual.eviction_half_lives;
    let (reserved, most) = usual.reserved_corrections;
    MemoryOptions {
        lock_timeout: Duration::from_secs(
            place("file_lock_timeout_seconds")
                .amount("file_lock_timeout_seconds", NumberUnit::Seconds, 1..=120_u64)
                .or(10),
        ),
        max_facts: count("max_facts", 10..=500, usual.max_facts),
        min_confidence: share("fact_confidence_threshold", usual.min_confidence),
        eviction: place("fact_eviction_policy").choice("fact_eviction_policy", EVICTION).or(usual.eviction),
        eviction_weights: [
            share("eviction_confidence_weight", certain),
            share("eviction_confirmation_weight", fresh),
            share("eviction_access_weight", used),
        ],
        eviction_half_lives: [
            half_life("eviction_confirmation_half_life_days", confirmed),
            half_life("eviction_access_half_life_days", accessed),
        ],
        reserved_corrections: (
            share("eviction_correction_reserved_fraction", reserved),
            count("eviction_correction_reserved_max", 0..=100, most),
        ),
        max_audit_entries: count("eviction_audit_max_entries", 0..=10_000, usual.max_audit_entries),
        max_injection_tokens: tokens("max_injection_tokens", 100..=8_000, usual.max_injection_tokens),
        guaranteed_categories: names("guaranteed_categories", usual.guaranteed_categories),
        guaranteed_tokens: tokens("guaranteed_token_budget", 50..=2_000, usual.guaranteed_tokens),
        staleness_review: flag("staleness_review_enabled", usual.staleness_review),
        staleness_days: days("staleness_age_days", 30..=365, usual.staleness_days),
        staleness_min: count("staleness_min_candidates", 1..=50, usual.staleness_min),
        staleness_max_removals: count(
            "staleness_max_removals_per_cycle",
            1..=50,
            usual.staleness_max_removals,
        ),
        staleness_protected: names("staleness_protected_categories", usual.staleness_protected),
        staleness_lifetimes: place("staleness_max_lifetime_multiplier")
            .number("staleness_max_lifetime_multiplier", 1..=100)
            .or(usual.staleness_lifetimes),
        max_extension_days: days("staleness_max_extension_days", 90..=36_500, usual.max_extension_days),
        consolidation: flag("consolidation_enabled", usual.consolidation),
        consolidation_min: count("consolidation_min_facts", 3..=30, usual.consolidation_min),
        consolidation_max_groups: count(
            "consolidation_max_groups_per_cycle",
            1..=10,
            usual.consolidation_max_groups,
        ),
        consolidation_max_sources: count(
            "consolidation_max_sources",
            2..=20,
            usual.consolidation_max_sources,
        ),
        ..usual
    }
}
