//! All texts for users in chats, with one catalogue per language and one function per text.
//!
//! The catalogues are `catalogue/en.ftl` and `catalogue/zh-Hans.ftl`. The build generates a method of [`Language`] for
//! each text, with the text's arguments in alphabetical order, so a missing text or argument does not compile.
//! Arguments are inserted unchanged, so callers have to escape Markdown in them. Deliberately absent: texts of the
//! command line, logs, errors of the HTTP API, and prompts to the model.

use serde::{Deserialize, Serialize};
use std::fmt::Display;

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// A language of answers to users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "&'static str")]
pub enum Language {
    /// English, the default for languages without a catalogue.
    #[default]
    English,
    /// Simplified Chinese, also for readers of Traditional Chinese, because they understand it better than English.
    Chinese,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// Returns the language's tag.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-Hans",
        }
    }

    /// Returns the primary subtag, which is the two-letter code of ISO 639-1.
    #[must_use]
    pub fn primary(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// Returns the language for a platform's language tag, such as `en-GB`, `zh_CN` or `zh-hant`; `None` if it has no
    /// catalogue.
    #[must_use]
    pub fn of_person(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_', '.']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| primary.eq_ignore_ascii_case(language.primary()))
    }

    /// Joins sentences into a paragraph. Skips empty ones.
    #[must_use]
    pub fn paragraph(self, sentences: &[&str]) -> String {
        let there: Vec<&str> = sentences.iter().copied().filter(|sentence| !sentence.is_empty()).collect();
        there.join(self.sentence_gap())
    }

    /// Joins names into a list.
    #[must_use]
    pub fn list(self, names: &[impl AsRef<str>]) -> String {
        names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(self.list_gap())
    }
}

impl From<String> for Language {
    /// Parses a stored tag. An unknown one becomes English.
    fn from(tag: String) -> Self {
        Self::of_person(&tag).unwrap_or_default()
    }
}

impl From<Language> for &'static str {
    fn from(language: Language) -> Self {
        language.tag()
    }
}

#[cfg(test)]
#[path = "../build/catalogue.rs"]
mod catalogue;
#[cfg(test)]
mod tests;
