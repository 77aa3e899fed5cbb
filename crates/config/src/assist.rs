//! Writing assistance by a model in DeerFlow's frontend: its `suggestions` and `input_polish`.

use super::{model::ModelConfig, reader::Section};

/// Settings of the writing assistance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assistance {
    /// Maximum number of follow-up questions that are suggested.
    pub max_suggestions: u32,
    /// Whether follow-up questions are suggested.
    pub suggests: bool,
    /// Rules for polishing texts; `None` disables it.
    pub polish: Option<PolishRules>,
}

settings! {
    /// Rules for polishing texts.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PolishRules(section, models: &[ModelConfig]) {
        /// Maximum length of such a text, in characters.
        max_chars: usize = number(1..=20_000).or(4_000);
        /// Name of the model that rewords the text.
        model as "model_name": Option<String> = model(models).eg("main").optional("the first model");
    }
}

/// Reads the rules.
pub(super) fn read(top: &Section<'_>, models: &[ModelConfig]) -> Assistance {
    let section = top.section("suggestions").about("Follow-up questions that DeerFlow's frontend suggests.");
    settings! { section =>
        /// Suggests follow-up questions after an answer.
        suggests as "enabled" = flag().or(true);
        /// Maximum number of suggested questions.
        max_suggestions = number(1..=5).or(3);
    }
    let section =
        top.section("input_polish").about("Rewording of text that people type in DeerFlow's frontend.");
    settings! { section =>
        /// Enables /api/input-polish, which rewords a text before it is sent.
        enabled = flag().or(true);
    }
    let rules = PolishRules::read(&section, models);
    Assistance { suggests, max_suggestions, polish: enabled.then_some(rules) }
}
