//! A fact: one sentence that an agent remembers of a user, with its source.
//!
//! Deliberately absent: how it is stored (`markdown`) and how the API shows it (`document`).

use crate::{error::MemoryRefusal, text::normalized, time::FactTime};
use indexmap::IndexMap;
use pudu_base::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Key of a superseded fact's file: the platform's id of the person who said it.
pub(crate) const AUTHOR: &str = "saidBy";
/// Maximum length of a fact's title, in characters; DeerFlow's.
const MAX_TITLE_CHARS: usize = 160;
/// Maximum length of a fact's name, in bytes: a file's name has 255, and needs an ending.
const MAX_ID_BYTES: usize = 128;

/// Names a fact within its agent and user. It is safe as the name of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FactId(String);

impl FactId {
    /// Checks a name.
    ///
    /// # Errors
    /// When it has other characters than ASCII letters, digits, `_` and `-`, or none, or more than 128.
    pub fn new(name: &str) -> Result<Self, MemoryRefusal> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_ID_BYTES || !name.chars().all(plain) {
            return Err(MemoryRefusal::BadFactId(crate::text::beginning(name, MAX_ID_BYTES)));
        }
        Ok(Self(name.to_owned()))
    }

    /// Makes a new name, `fact_` and 8 hexadecimal digits, that is not taken. It follows from what the fact says and
    /// when, so that nobody needs randomness.
    #[must_use]
    pub fn derive(content: &str, now: FactTime, taken: impl Fn(&Self) -> bool) -> Self {
        let mut name = Self(String::new());
        for attempt in 0_u32..=u32::MAX {
            let hash = digest(format!("{content}\n{now}\n{attempt}"));
            name = Self(format!("fact_{}", hash.chars().take(8).collect::<String>()));
            if !taken(&name) {
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

    /// Returns the folder that the fact's file stands in: 2 hexadecimal digits.
    pub(crate) fn shard(&self) -> String {
        digest(&self.0).chars().take(2).collect()
    }
}

impl std::fmt::Display for FactId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Kind of a fact. DeerFlow's nine, the last with the name of any other kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FactCategory {
    /// Something liked or disliked.
    Preference,
    /// A mistake that the person put right.
    Correction,
    /// Circumstances.
    Context,
    /// Something aimed at.
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
    /// Reads a kind and its extension. An unknown kind becomes `other` with its name, as in DeerFlow; a known one has no
    /// extension, whatever is left of an earlier kind.
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

    /// Returns the name of a kind that DeerFlow does not have.
    #[must_use]
    pub fn extension(&self) -> Option<&str> {
        match self {
            Self::Other(extension) => extension.as_deref(),
            _ => None,
        }
    }

    /// Returns the name for people: the extension where there is one.
    #[must_use]
    pub fn label(&self) -> &str {
        self.extension().unwrap_or(self.name())
    }
}

/// Way by which a fact came: a conversation with its thread, or DeerFlow's words for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactSource {
    /// `conversation`, `manual`, `consolidation`, `import` or `unknown`; others are kept.
    pub kind: String,
    /// The thread of the conversation.
    pub thread: Option<String>,
}

impl FactSource {
    /// A conversation in a thread.
    #[must_use]
    pub fn conversation(thread: &str) -> Self {
        Self { kind: "conversation".to_owned(), thread: Some(thread.to_owned()) }
    }

    /// A person's own request, without a conversation.
    #[must_use]
    pub fn manual() -> Self {
        Self::parse("manual")
    }

    /// Reads the one word by which the API and version 1.0 tell a source: a known way, or else a thread.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "" => Self::parse("unknown"),
            "manual" | "consolidation" | "import" | "unknown" => Self { kind: text.to_owned(), thread: None },
            thread => Self::conversation(thread),
        }
    }

    /// Returns the one word that [`FactSource::parse`] reads.
    #[must_use]
    pub fn text(&self) -> &str {
        self.thread.as_deref().unwrap_or(&self.kind)
    }
}

/// Evidence of a fact: author, message and words. DeerFlow's files have no place for it, so it stands beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FactOrigin {
    /// The platform's id of the person who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Their name at that time.
    #[serde(rename = "authorName", skip_serializing_if = "Option::is_none")]
    pub author_name: Option<String>,
    /// The message that they said it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Their words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

/// One thing that an agent remembers of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Its name.
    pub id: FactId,
    /// Its text: trimmed, never empty.
    pub content: String,
    /// Headline in its file, where it is not simply the text's beginning.
    pub title: Option<String>,
    /// Its kind.
    pub category: FactCategory,
    /// Words for its subject.
    pub topics: Vec<String>,
    /// Certainty, from 0 to 1.
    pub confidence: f64,
    /// The moment when it was first stored.
    pub created_at: FactTime,
    /// The moment of its last material change.
    pub updated_at: FactTime,
    /// Way by which it came.
    pub source: FactSource,
    /// For a correction: the mistake to avoid.
    pub source_error: Option<String>,
    /// Days from its creation for which it is expected to hold.
    pub expected_valid_days: Option<u32>,
    /// The moment when the person last confirmed it.
    pub last_confirmed_at: Option<FactTime>,
    /// Number of confirmations.
    pub confirmation_count: Option<u32>,
    /// Facts that it was made of.
    pub consolidated_from: Vec<String>,
    /// The moment when it was made of them.
    pub consolidated_at: Option<FactTime>,
    /// Number of its versions, from 1.
    pub revision: u64,
    /// Raw id of the user in its file, which may differ from the folder's name; `None` before it is stored.
    pub raw_user: Option<String>,
    /// Evidence, where pudu stored it.
    pub origin: Option<FactOrigin>,
    /// Keys of its file that pudu does not know, as they were.
    pub extra: IndexMap<String, Value>,
}

impl Fact {
    /// Makes a fact that was not stored yet.
    #[must_use]
    pub fn new(id: FactId, content: &str, category: FactCategory, confidence: f64, now: FactTime) -> Self {
        Self {
            id,
            content: clean(content),
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

    /// Returns the moment when it was last stored, changed or confirmed.
    #[must_use]
    pub fn last_said(&self) -> FactTime {
        self.last_confirmed_at.map_or(self.updated_at, |at| at.max(self.updated_at))
    }

    /// Returns the name of the person who said it.
    #[must_use]
    pub fn author_name(&self) -> Option<&str> {
        self.origin.as_ref()?.author_name.as_deref().filter(|name| !name.trim().is_empty())
    }

    /// Whether two versions say the same, whenever and how often they were written.
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

    /// Whether it says the same as a text.
    #[must_use]
    pub fn says(&self, text: &str) -> bool {
        normalized(&self.content) == normalized(text)
    }

    /// Returns the headline of its file.
    pub(crate) fn headline(&self) -> String {
        self.title.clone().unwrap_or_else(|| headline(&self.content))
    }

    /// Whether it is due for a review: neither confirmed nor stored within its expected time.
    #[must_use]
    pub fn is_stale(&self, default_days: u32, now: FactTime) -> bool {
        let since = self.last_confirmed_at.unwrap_or(self.created_at);
        since.days_until(now) > f64::from(self.expected_valid_days.unwrap_or(default_days))
    }
}

/// Returns a text as a fact keeps it: lines end alike, no spaces around it.
pub(crate) fn clean(content: &str) -> String {
    content.replace("\r\n", "\n").replace('\r', "\n").trim().to_owned()
}

/// Returns the headline that a text gives by itself.
pub(crate) fn headline(content: &str) -> String {
    let first = content.lines().next().unwrap_or_default().trim();
    crate::text::beginning(first, MAX_TITLE_CHARS).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_as_a_file() {
        for bad in ["", "a/b", "..", "a b", "ü", &"a".repeat(129)] {
            assert!(FactId::new(bad).is_err(), "{bad}");
        }
        let name = FactId::derive("a", FactTime::default(), |_| false);
        assert!(FactId::new(name.as_str()).is_ok());
        assert_eq!(name.as_str().len(), "fact_".len() + 8);
        assert_ne!(FactId::derive("a", FactTime::default(), |taken| *taken == name), name);
    }

    #[test]
    fn categories_are_deerflows_and_others_are_kept_by_name() {
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
