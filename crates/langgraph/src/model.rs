//! Models as the API lists them.

use schemars::JsonSchema;
use serde::Serialize;

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Model")]
pub struct ListedModel {
    /// The name by which it is chosen.
    pub name: String,
    /// Its provider's name for it.
    pub model: String,
    /// The name that people see.
    pub display_name: String,
    /// Its description.
    pub description: Option<String>,
    /// Whether it can think.
    pub supports_thinking: bool,
    /// Whether the effort of its thinking can be set.
    pub supports_reasoning_effort: bool,
}

/// The models that can be chosen, the default first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelList {
    /// The models.
    pub models: Vec<ListedModel>,
    /// Whether tokens are counted: always true.
    pub token_usage: Switched,
}

/// Whether something is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Switched {
    /// Whether it is.
    pub enabled: bool,
}
