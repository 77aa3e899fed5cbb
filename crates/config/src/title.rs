//! Rules for titles of threads: DeerFlow's `title`.

use super::{model::ModelConfig, reader::Section};
use pudu_agent::TitleRules;

/// Rules for titles, before the model is looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Titles {
    /// The rules; `None` if threads get no titles.
    pub rules: Option<TitleRules>,
    /// Name of the model that writes titles; if `None`, a title is the beginning of the first question.
    pub model: Option<String>,
}

/// Reads the rules.
pub(super) fn read(top: &Section<'_>, models: &[ModelConfig]) -> Titles {
    let section = top.section("title").about("Titles of threads, for the page, the terminal and lists.");
    settings! { section =>
        /// Gives each thread a title.
        enabled = flag().or(true);
        /// Name of the model that writes titles; without one a title is the beginning of the first question.
        model as "model_name" = model(models).eg("main").optional("none");
        /// Maximum number of words of a title that a model writes.
        max_words = number(1..=20).or(6);
        /// Maximum length of a title, in characters.
        max_chars = number(10..=200).or(60);
        /// Instruction to that model, with {max_words}, {user_msg} and {assistant_msg}.
        prompt as "prompt_template" = text()
            .eg("\"A title of {max_words} words for this: {user_msg}\"").optional("pudu's own");
    }
    Titles { rules: enabled.then_some(TitleRules { max_words, max_chars, prompt }), model }
}
