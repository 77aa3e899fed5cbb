//! The six summaries of a user, which all their agents share.

use crate::time::FactTime;
use serde_json::{Map, Value, json};

/// Identifies a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SummaryKey {
    /// The person's work.
    WorkContext,
    /// The person.
    PersonalContext,
    /// Their current focus.
    TopOfMind,
    /// The last months.
    RecentMonths,
    /// The time before that.
    EarlierContext,
    /// Long-term background.
    LongTermBackground,
}

impl SummaryKey {
    /// All keys, in the order of the file.
    pub const ALL: [Self; 6] = [
        Self::WorkContext,
        Self::PersonalContext,
        Self::TopOfMind,
        Self::RecentMonths,
        Self::EarlierContext,
        Self::LongTermBackground,
    ];

    /// Returns its section and key in the file.
    #[must_use]
    pub fn path(self) -> (&'static str, &'static str) {
        match self {
            Self::WorkContext => ("user", "workContext"),
            Self::PersonalContext => ("user", "personalContext"),
            Self::TopOfMind => ("user", "topOfMind"),
            Self::RecentMonths => ("history", "recentMonths"),
            Self::EarlierContext => ("history", "earlierContext"),
            Self::LongTermBackground => ("history", "longTermBackground"),
        }
    }
}

/// A summary's text, and the time when it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The text; empty if there is none.
    pub text: String,
    /// Time of its last change.
    pub updated_at: Option<FactTime>,
}

/// The six summaries of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summaries([Summary; 6]);

impl Summaries {
    /// Returns a summary.
    #[must_use]
    pub fn get(&self, key: SummaryKey) -> &Summary {
        let [work, personal, mind, recent, earlier, background] = &self.0;
        match key {
            SummaryKey::WorkContext => work,
            SummaryKey::PersonalContext => personal,
            SummaryKey::TopOfMind => mind,
            SummaryKey::RecentMonths => recent,
            SummaryKey::EarlierContext => earlier,
            SummaryKey::LongTermBackground => background,
        }
    }

    /// Sets a summary.
    pub fn set(&mut self, key: SummaryKey, text: &str, at: Option<FactTime>) {
        let [work, personal, mind, recent, earlier, background] = &mut self.0;
        let slot = match key {
            SummaryKey::WorkContext => work,
            SummaryKey::PersonalContext => personal,
            SummaryKey::TopOfMind => mind,
            SummaryKey::RecentMonths => recent,
            SummaryKey::EarlierContext => earlier,
            SummaryKey::LongTermBackground => background,
        };
        *slot = Summary { text: text.trim().to_owned(), updated_at: at };
    }

    /// Whether all summaries are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|summary| summary.text.is_empty())
    }

    /// Reads the sections `user` and `history` of a document. A missing or invalid text becomes empty.
    #[must_use]
    pub fn read(document: &Map<String, Value>) -> Self {
        let mut summaries = Self::default();
        for key in SummaryKey::ALL {
            let (section, name) = key.path();
            let Some(value) = document.get(section).and_then(|section| section.get(name)) else { continue };
            let text = value.get("summary").unwrap_or(value).as_str().unwrap_or_default();
            let at = value.get("updatedAt").and_then(Value::as_str).and_then(FactTime::parse);
            summaries.set(key, text, at);
        }
        summaries
    }

    /// Writes the sections into a document. Unknown keys are kept.
    pub(crate) fn write(&self, document: &mut Map<String, Value>) {
        for key in SummaryKey::ALL {
            let (section, name) = key.path();
            let section = document.entry(section).or_insert_with(|| json!({}));
            if !section.is_object() {
                *section = json!({});
            }
            let Summary { text, updated_at } = self.get(key);
            let at = updated_at.map(|at| at.to_string()).unwrap_or_default();
            if let Some(section) = section.as_object_mut() {
                section.insert(name.to_owned(), json!({"summary": text, "updatedAt": at}));
            }
        }
    }
}
