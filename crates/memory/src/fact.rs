//! A fact: one sentence that an agent remembers about a user, with its source.
//!
//! Deliberately absent: its file format (`markdown`) and its form in the API (`document`).

use crate::{error::MemoryRefusal, text::normalized, time::FactTime};
use indexmap::IndexMap;
use pudu_base::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Key of a superseded fact's file: the platform's id of the fact's author.
pub(crate) const AUTHOR: &str = "saidBy";
/// Maximum length of a fact's title, in characters, as in DeerFlow.
const MAX_TITLE_CHARS: usize = 160;
/// Maximum length of a fact's name, in bytes. A file name can have 255, including the extension.
const MAX_ID_BYTES: usize = 128;

/// Identifies a fact within its agent and user. It is safe as a file name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FactId(String);

impl FactId {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, longer than 128 bytes, or has characters other than ASCII letters, digits, `_` and `-`.
    pub fn new(name: &str) -> Result<Self, MemoryRefusal> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_ID_BYTES || !name.chars().all(plain) {
            return Err(MemoryRefusal::BadFactId(crate::text::beginning(name, MAX_ID_BYTES)));
        }
        Ok(Self(name.to_owned()))
    }

    /// Derives an unused name, `fact_` and 8 hexadecimal digits, from the fact's text and time, without randomness.
    #[must_use]
    pub fn derive(content: &str, now: FactTime, is_taken: impl Fn(&Self) -> bool) -> Self {
        let mut name = Self(String::new());
        for attempt in 0_u32..=u32::MAX {
            let hash = digest(format!("{content}\n{now}\n{attempt}"));
            name = Self(format!("fact_{}", hash.chars().take(8).collect::<String>()));
            if !is_taken(&name) {
                break;
            }
        }
        name
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the folder of the fact's file: 2 hexadecimal digits.
    pub(crate) fn shard(&self) -> String {
        digest(&self.0).chars().take(2).collect()
    }
}

impl std::fmt::Display for FactId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Kind of a fact: DeerFlow's nine kinds. The last one contains the name of any other kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FactCategory {
    /// Something liked or disliked.
    Preference,
    /// A mistake that the person corrected.
    Correction,
    /// Circumstances.
    Context,
    /// An aim.
    Goal,
    /// A habit.
    Behavior,
    /// The person's name, role, language.
    Identity,
    /// A limit to respect.
    Constraint,
    /// A choice that was made.
    Decision,
    /// Any other kind, with its name (DeerFlow's `categoryExtension`).
    Other(Option<String>),
}

impl FactCategory {
    /// Parses a kind and its extension. An unknown kind becomes `other` with its name, as in DeerFlow. A known kind has
    /// no extension, even if the file still has one from an earlier kind.
    #[must_use]
    pub fn parse(name: &str, extension: Option<&str>) -> Self {
        let name = name.trim();
        match name.to_lowercase().as_str() {
            "preference" => Self::Preference,
            "correction" => Self::Correction,
            "context" | "" => Self::Context,
            "goal" => Self::Goal,
            "behavior" => Self::Behavior,
            "identity" => Self::Identity,
            "constraint" => Self::Constraint,
            "decision" => Self::Decision,
            "other" => Self::Other(extension.map(str::to_owned)),
            _ => Self::Other(Some(extension.unwrap_or(name).to_owned())),
        }
    }

    /// Returns the kind's name in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Preference => "preference",
            Self::Correction => "correction",
            Self::Context => "context",
            Self::Goal => "goal",
            Self::Behavior => "behavior",
            Self::Identity => "identity",
            Self::Constraint => "constraint",
            Self::Decision => "decision",
            Self::Other(_) => "other",
        }
    }

    /// Returns the name of a kind that is unknown to DeerFlow.
    #[must_use]
    pub fn extension(&self) -> Option<&str> {
        match self {
            Self::Other(extension) => extension.as_deref(),
            _ => None,
        }
    }

    /// Returns the name for display: the extension if there is one.
    #[must_use]
    pub fn label(&self) -> &str {
        self.extension().unwrap_or(self.name())
    }
}

/// Source of a fact: a conversation with its thread, or DeerFlow's word for another source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactSource {
    /// `conversation`, `manual`, `consolidation`, `import` or `unknown`; other words are kept.
    pub kind: String,
    /// The thread of the conversation.
    pub thread: Option<String>,
}

impl FactSource {
    /// Creates the source for a conversation in a thread.
    #[must_use]
    pub fn conversation(thread: &str) -> Self {
        Self { kind: "conversation".to_owned(), thread: Some(thread.to_owned()) }
    }

    /// Creates the source for a person's explicit request outside a conversation.
    #[must_use]
    pub fn manual() -> Self {
        Self::parse("manual")
    }

    /// Parses the single word for a source in the API and in version 1.0: a known kind, otherwise a thread.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "" => Self::parse("unknown"),
            "manual" | "consolidation" | "import" | "unknown" => Self { kind: text.to_owned(), thread: None },
            thread => Self::conversation(thread),
        }
    }

    /// Returns the single word that [`FactSource::parse`] parses.
    #[must_use]
    pub fn text(&self) -> &str {
        self.thread.as_deref().unwrap_or(&self.kind)
    }
}

/// Evidence for a fact: author, message and quote. DeerFlow's files have no field for it, so it has a separate file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FactOrigin {
    /// The platform's id of the author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Their name at that time.
    #[serde(rename = "authorName", skip_serializing_if = "Option::is_none")]
    pub author_name: Option<String>,
    /// The message that contains the quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Their words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

/// One thing that an agent remembers about a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Its name.
    pub id: FactId,
    /// Its text: trimmed, never empty.
    pub content: String,
    /// Headline in its file, if it is not the beginning of the text.
    pub title: Option<String>,
    /// Its kind.
    pub category: FactCategory,
    /// Words for its topics.
    pub topics: Vec<String>,
    /// Certainty, from 0 to 1.
    pub confidence: f64,
    /// Time when it was first stored.
    pub created_at: FactTime,
    /// Time of its last material change.
    pub updated_at: FactTime,
    /// Its source.
    pub source: FactSource,
    /// For a correction: the mistake to avoid.
    pub source_error: Option<String>,
    /// Expected validity, in days from its creation.
    pub expected_valid_days: Option<u32>,
    /// Time of the last confirmation by the person.
    pub last_confirmed_at: Option<FactTime>,
    /// Number of confirmations.
    pub confirmation_count: Option<u32>,
    /// Facts that it was merged from.
    pub consolidated_from: Vec<String>,
    /// Time of the merge.
    pub consolidated_at: Option<FactTime>,
    /// Version number, starting at 1.
    pub revision: u64,
    /// Raw id of the user in its file, which may differ from the folder's name; `None` before it is stored.
    pub raw_user: Option<String>,
    /// Evidence, if pudu stored any.
    pub origin: Option<FactOrigin>,
    /// Unknown keys of its file, unchanged.
    pub extra: IndexMap<String, Value>,
}

impl Fact {
    /// Creates a fact that is not stored yet.
    #[must_use]
    pub fn new(id: FactId, content: &str, category: FactCategory, confidence: f64, now: FactTime) -> Self {
        Self {
            id,
            content: normalize_content(content),
            title: None,
            category,
            topics: Vec::new(),
            confidence,
            created_at: now,
            updated_at: now,
            source: FactSource::parse("unknown"),
            source_error: None,
            expected_valid_days: None,
            last_confirmed_at: None,
            confirmation_count: None,
            consolidated_from: Vec::new(),
            consolidated_at: None,
            revision: 1,
            raw_user: None,
            origin: None,
            extra: IndexMap::new(),
        }
    }

    /// Returns the time when it was last stored, changed or confirmed.
    #[must_use]
    pub fn last_said(&self) -> FactTime {
        self.last_confirmed_at.map_or(self.updated_at, |at| at.max(self.updated_at))
    }

    /// Returns the name of the fact's author.
    #[must_use]
    pub fn author_name(&self) -> Option<&str> {
        self.origin.as_ref()?.author_name.as_deref().filter(|name| !name.trim().is_empty())
    }

    /// Whether two versions have the same content, apart from their times and revisions.
    #[must_use]
    pub fn same_matter(&self, other: &Self) -> bool {
        let plain = |fact: &Self| Self {
            revision: 1,
            created_at: FactTime::default(),
            updated_at: FactTime::default(),
            raw_user: None,
            ..fact.clone()
        };
        plain(self) == plain(other)
    }

    /// Whether its text says the same as another text.
    #[must_use]
    pub fn matches_text(&self, text: &str) -> bool {
        normalized(&self.content) == normalized(text)
    }

    /// Returns the headline of its file.
    pub(crate) fn headline(&self) -> String {
        self.title.clone().unwrap_or_else(|| headline(&self.content))
    }

    /// Whether it is due for review: neither confirmed nor stored within its expected validity.
    #[must_use]
    pub fn is_stale(&self, default_days: u32, now: FactTime) -> bool {
        let since = self.last_confirmed_at.unwrap_or(self.created_at);
        since.days_until(now) > f64::from(self.expected_valid_days.unwrap_or(default_days))
    }
}

/// Normalizes a fact's text: makes line breaks uniform and trims it.
pub(crate) fn normalize_content(content: &str) -> String {
    content.replace("\r\n", "\n").replace('\r', "\n").trim().to_owned()
}

/// Returns the default headline of a text.
pub(crate) fn headline(content: &str) -> String {
    let first = content.lines().next().unwrap_or_default().trim();
    crate::text::beginning(first, MAX_TITLE_CHARS).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_id_is_safe_as_a_file_name() {
        for bad in ["", "a/b", "..", "a b", "ü", &"a".repeat(129)] {
            assert!(FactId::new(bad).is_err(), "{bad}");
        }
        let name = FactId::derive("a", FactTime::default(), |_| false);
        assert!(FactId::new(name.as_str()).is_ok());
        assert_eq!(name.as_str().len(), "fact_".len() + 8);
        assert_ne!(FactId::derive("a", FactTime::default(), |taken| *taken == name), name);
    }

    #[test]
    fn categories_are_deerflows_and_others_keep_their_name() {
        for (name, extension, expect) in [
            ("preference", None, FactCategory::Preference),
            ("Preference", None, FactCategory::Preference),
            ("preference", Some("left over"), FactCategory::Preference),
            ("knowledge", None, FactCategory::Other(Some("knowledge".into()))),
            ("other", Some("knowledge"), FactCategory::Other(Some("knowledge".into()))),
            ("other", None, FactCategory::Other(None)),
            ("", None, FactCategory::Context),
        ] {
            assert_eq!(FactCategory::parse(name, extension), expect, "{name}");
        }
    }
}
