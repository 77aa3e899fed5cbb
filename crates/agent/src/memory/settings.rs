//! Memory rules with the keys of DeerFlow's configuration.

use super::{MemoryMode, MemoryRules};
use serde_json::{Value, json};

/// Returns the rules, and the name of the model that reads conversations, under the keys of both DeerFlow formats.
/// Settings with secrets are omitted: only the model's name is included.
#[must_use]
pub fn settings(memory: Option<(&MemoryRules, Option<&str>)>) -> Value {
    let usual = MemoryRules::default();
    let (rules, model) = memory.unwrap_or((&usual, None));
    let enabled = memory.is_some();
    let MemoryRules { mode, injection, debounce, last_reading, options, .. } = rules;
    let numbers = json!({
        "debounce_seconds": debounce.as_secs(),
        "max_facts": options.max_facts,
        "fact_confidence_threshold": options.min_confidence,
        "max_injection_tokens": options.max_injection_tokens,
        "fact_eviction_policy": options.eviction.name(),
        "guaranteed_categories": options.guaranteed_categories,
        "guaranteed_token_budget": options.guaranteed_tokens,
        "staleness_review_enabled": options.staleness_review,
        "staleness_age_days": options.staleness_days,
        "consolidation_enabled": options.consolidation,
        "model": model,
    });
    json!({
        "enabled": enabled,
        "mode": match mode {
            MemoryMode::Middleware => "middleware",
            MemoryMode::Tool => "tool",
        },
        "injection_enabled": enabled && *injection,
        "shutdown_flush_timeout_seconds": last_reading.as_secs(),
        "manager_class": if enabled { "deermem" } else { "noop" },
        "storage_path": "",
        "debounce_seconds": debounce.as_secs(),
        "max_facts": options.max_facts,
        "fact_confidence_threshold": options.min_confidence,
        "max_injection_tokens": options.max_injection_tokens,
        "backend_config": numbers,
    })
}
