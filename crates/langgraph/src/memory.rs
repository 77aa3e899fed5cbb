//! Memory facts in the API's format.

use pudu_memory::{FactCategory, FactEdit, FactSource, NewFact};
use schemars::JsonSchema;
use serde::Deserialize;

/// A fact to add.
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
    /// Creates a fact with the default category.
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

/// Change of a fact. Missing or null fields stay unchanged.
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
