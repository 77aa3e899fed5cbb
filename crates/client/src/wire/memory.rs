//! Settings of memory, and facts in the form of clients.

use crate::{
    MemoryMode, MemoryRules,
    memories::{FactCategory, FactEdit, FactSource, NewFact},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A fact to remember.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct AddedFact {
    /// The text of the fact.
    pub content: String,
    /// Its kind.
    #[serde(default = "context")]
    pub category: String,
    /// Its certainty, from 0 to 1.
    #[serde(default = "half")]
    pub confidence: f64,
}

fn context() -> String {
    "context".to_owned()
}

fn half() -> f64 {
    0.5
}

impl AddedFact {
    /// Makes a fact of the default category.
    #[must_use]
    pub fn new(content: &str) -> Self {
        Self { content: content.to_owned(), category: context(), confidence: half() }
    }
}

impl From<AddedFact> for NewFact {
    fn from(AddedFact { content, category, confidence }: AddedFact) -> Self {
        let category = FactCategory::parse(&category, None);
        Self { content, category, confidence, source: FactSource::manual(), origin: None }
    }
}

/// Change of a fact: missing or null fields stay.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FactChange {
    /// The text of the fact.
    pub content: Option<String>,
    /// Its kind.
    pub category: Option<String>,
    /// Its certainty, from 0 to 1.
    pub confidence: Option<f64>,
}

impl From<FactChange> for FactEdit {
    fn from(FactChange { content, category, confidence }: FactChange) -> Self {
        let category = category.map(|category| FactCategory::parse(&category, None));
        Self { content, category, confidence, revision: None }
    }
}

/// Writes the rules, and the name of the model that reads conversations, under the keys of both of DeerFlow's shapes.
/// Settings with secrets are left out: the model is only named.
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
