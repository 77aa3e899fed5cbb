//! The port to prompts that people start by name, like skills. A server offers them.

use crate::BoxFuture;
use std::sync::Arc;

/// A prompt that people start with `/name` and its arguments.
pub trait NamedPrompt: Send + Sync {
    /// Describes the prompt.
    fn spec(&self) -> &PromptSpec;

    /// Returns the prompt's text. `arguments` is the text after the name, as a person wrote it.
    ///
    /// # Errors
    /// The reason why there is no text, for the model.
    fn get<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// Description of a prompt for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptSpec {
    /// Its name, unique among prompts.
    pub name: String,
    /// Its purpose.
    pub about: String,
    /// Placeholder for its arguments; empty if it takes none.
    pub argument_hint: String,
    /// Name of the server that offers it.
    pub server: String,
}

/// Finds a prompt by its name as typed: in any case, and with `_` in place of `-`.
#[must_use]
pub fn named_prompt<'a>(prompts: &'a [Arc<dyn NamedPrompt>], word: &str) -> Option<&'a Arc<dyn NamedPrompt>> {
    let folded = |name: &str| name.to_lowercase().replace('-', "_");
    let word = folded(word);
    prompts.iter().find(|prompt| folded(&prompt.spec().name) == word)
}
