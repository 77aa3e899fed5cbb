//! How threads get their titles: DeerFlow's `title`.

use super::{model::ModelConfig, model_name, reader::Section};
use pudu_client::TitleRules;

/// Rules for titles, before the model is looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Titles {
    /// The rules; threads have no titles if `None`.
    pub rules: Option<TitleRules>,
    /// Name of the model that writes them; they are the beginning of the first question if none.
    pub model: Option<String>,
}

/// Reads the rules.
pub(super) fn read(top: &Section<'_>, models: &[ModelConfig]) -> Titles {
    let section = top.section("title");
    let enabled = section.flag("enabled").or(true);
    let model = model_name::named(&section, "model_name", models, "none");
    let rules = TitleRules {
        max_words: section.number("max_words", 1..=20_u32).or(6) as usize,
        max_chars: section.number("max_chars", 10..=200_u32).or(60) as usize,
        prompt: section.text("prompt_template").optional("pudu's own"),
    };
    Titles { rules: enabled.then_some(rules), model }
}
