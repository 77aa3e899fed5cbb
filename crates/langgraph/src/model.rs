//! Models as the API lists them.

use schemars::JsonSchema;
use serde::Serialize;

/// An available model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Model")]
pub struct ListedModel {
    /// The name by which it is selected.
    pub name: String,
    /// The provider's name of the model.
    pub model: String,
    /// The name shown to people.
    pub display_name: String,
    /// Its description.
    pub description: Option<String>,
    /// Whether it can think.
    pub supports_thinking: bool,
    /// Whether its thinking effort can be set.
    pub supports_reasoning_effort: bool,
}

/// The available models, the default first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelList {
    /// The models.
    pub models: Vec<ListedModel>,
    /// Whether tokens are counted: always true.
    pub token_usage: Switched,
}

/// Whether a feature is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Switched {
    /// Whether it is enabled.
    pub enabled: bool,
}
