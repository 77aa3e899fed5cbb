//! Small helps of a model for people who write in DeerFlow's frontend: its `suggestions` and `input_polish`.

use super::{model::ModelConfig, model_name, reader::Section};

/// Helps of a model for people who write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assistance {
    /// Maximum number of follow-up questions that are suggested.
    pub max_suggestions: u32,
    /// Whether any are.
    pub suggests: bool,
    /// Rules for polishing texts; no text is polished if `None`.
    pub polish: Option<PolishRules>,
}

/// Rules for polishing texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolishRules {
    /// Maximum length of a text, in characters.
    pub max_chars: usize,
    /// Name of the model that polishes; the first one if none.
    pub model: Option<String>,
}

/// Reads the rules.
pub(super) fn read(top: &Section<'_>, models: &[ModelConfig]) -> Assistance {
    let suggestions = top.section("suggestions");
    let polish = top.section("input_polish");
    let is_polished = polish.flag("enabled").or(true);
    let rules = PolishRules {
        max_chars: polish.number("max_chars", 1..=20_000_u32).or(4_000) as usize,
        model: model_name::named(&polish, "model_name", models, "the first model"),
    };
    Assistance {
        suggests: suggestions.flag("enabled").or(true),
        max_suggestions: suggestions.number("max_suggestions", 1..=5_u32).or(3),
        polish: is_polished.then_some(rules),
    }
}
