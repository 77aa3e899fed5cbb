//! All texts for people in chats, one catalogue a language, each text a function.
//!
//! The catalogues are `catalogue/en.ftl` and `catalogue/zh-Hans.ftl`. The build makes a method of [`Language`] of each
//! text, with the text's arguments in alphabetical order, so a text or an argument that is missing does not compile.
//! Arguments enter as they are: callers see to Markdown in them. Deliberately absent: texts of the command line, logs,
//! errors of the HTTP API, prompts to the model.

use serde::{Deserialize, Serialize};
use std::fmt::Display;

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// A language that people are answered in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "&'static str")]
pub enum Language {
    /// English, for all whose language has no catalogue.
    #[default]
    English,
    /// Simplified Chinese. Readers of Traditional Chinese get it as well: it is nearer to them than English.
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

    /// Returns the first part of the tag: ISO 639-1's code of two letters.
    #[must_use]
    pub fn primary(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// Returns the language of a person by the tag that a platform tells, such as `en-GB`, `zh_CN` or `zh-hant`;
    /// `None` for one without a catalogue.
    #[must_use]
    pub fn of_person(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_', '.']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| primary.eq_ignore_ascii_case(language.primary()))
    }

    /// Puts sentences together to a paragraph; those that are empty are left out.
    #[must_use]
    pub fn paragraph(self, sentences: &[&str]) -> String {
        let there: Vec<&str> = sentences.iter().copied().filter(|sentence| !sentence.is_empty()).collect();
        there.join(self.sentence_gap())
    }

    /// Puts names together to a list.
    #[must_use]
    pub fn list(self, names: &[impl AsRef<str>]) -> String {
        names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(self.list_gap())
    }
}

impl From<String> for Language {
    /// Reads a stored tag; one of another version is English.
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
