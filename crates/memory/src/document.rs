//! A user's memory as one agent sees it, and its JSON form in DeerFlow's API.

use crate::{
    error::MemoryRefusal,
    fact::{Fact, FactCategory, FactId, FactSource, normalize_content},
    scope::MemoryScope,
    summary::Summaries,
    time::FactTime,
};
use serde_json::{Map, Value, json};
use std::{collections::HashSet, path::PathBuf};

/// Maximum number of facts in an imported document.
const MAX_IMPORTED_FACTS: usize = 10_000;

/// Maximum size of an imported fact, in bytes of JSON, so that its file stays within the limit.
const MAX_IMPORTED_FACT_BYTES: usize = 128 * 1024;
/// Known keys of a fact in a document. Other keys are preserved.
const KNOWN_KEYS: [&str; 23] = [
    "id",
    "content",
    "title",
    "category",
    "categoryExtension",
    "topics",
    "confidence",
    "createdAt",
    "source",
    "sourceError",
    "schemaVersion",
    "status",
    "scope",
    "revision",
    "updatedAt",
    "consolidatedAt",
    "consolidatedFrom",
    "expected_valid_days",
    "lastConfirmedAt",
    "confirmationCount",
    "origin",
    "user_id",
    "agent_name",
];

/// A file that cannot be parsed. It is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenFile {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub why: String,
}

/// Level of detail of a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentDetail {
    /// The keys of DeerFlow's API.
    Api,
    /// The keys of the API, and those found only in files: validity, confirmations, evidence.
    Full,
}

/// A user's memory as one agent sees it at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryDocument {
    /// Its user and agent.
    pub scope: MemoryScope,
    /// Whether anything was ever stored for the user.
    pub stored: bool,
    /// Revision of the user's memory; a writer passes it to detect conflicts.
    pub revision: u64,
    /// Time of the last change.
    pub last_updated: Option<FactTime>,
    /// Summaries of the user.
    pub summaries: Summaries,
    /// The agent's facts, sorted by name.
    pub facts: Vec<Fact>,
    /// Files that could not be parsed.
    pub broken: Vec<BrokenFile>,
}

impl MemoryDocument {
    /// Returns the memory of a user without stored data.
    #[must_use]
    pub fn empty(scope: MemoryScope) -> Self {
        Self {
            scope,
            stored: false,
            revision: 0,
            last_updated: None,
            summaries: Summaries::default(),
            facts: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// Returns the ids of a thread's messages that are the origin of a fact.
    pub fn evidence(&self, thread: &str) -> impl Iterator<Item = &str> {
        let of_thread = move |fact: &&Fact| fact.source.thread.as_deref() == Some(thread);
        let messages = self.facts.iter().filter(of_thread).filter_map(|fact| fact.origin.as_ref());
        messages.filter_map(|origin| origin.message.as_deref())
    }

    /// Returns a fact.
    #[must_use]
    pub fn fact(&self, id: &FactId) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.id == *id)
    }

    /// Returns the fact that states the same as a text.
    #[must_use]
    pub fn find_same(&self, text: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.matches_text(text))
    }

    /// Lists the facts that contain a text, ignoring case.
    #[must_use]
    pub fn containing(&self, text: &str) -> Vec<&Fact> {
        let wanted = text.trim().to_lowercase();
        self.facts.iter().filter(|fact| fact.content.to_lowercase().contains(&wanted)).collect()
    }

    /// Returns the document of DeerFlow's API. As in DeerFlow, its version is `1.0` until something is stored.
    #[must_use]
    pub fn to_json(&self, detail: DocumentDetail) -> Value {
        let mut document = Map::new();
        document.insert("version".to_owned(), json!(if self.stored { "2.0" } else { "1.0" }));
        document.insert("revision".to_owned(), json!(self.revision));
        let updated = self.last_updated.map(|at| at.to_string()).unwrap_or_default();
        document.insert("lastUpdated".to_owned(), json!(updated));
        self.summaries.write(&mut document);
        let facts: Vec<Value> = self.facts.iter().map(|fact| fact_json(fact, &self.scope, detail)).collect();
        document.insert("facts".to_owned(), json!(facts));
        Value::Object(document)
    }
}

/// Returns a fact as in DeerFlow's API.
#[must_use]
pub fn fact_json(fact: &Fact, scope: &MemoryScope, detail: DocumentDetail) -> Value {
    let mut value = json!({
        "id": fact.id.as_str(),
        "content": fact.content,
        "category": fact.category.name(),
        "categoryExtension": fact.category.extension(),
        "topics": fact.topics,
        "confidence": fact.confidence,
        "createdAt": fact.created_at.to_string(),
        "source": fact.source.text(),
        "sourceError": fact.source_error,
        "schemaVersion": 2,
        "status": "active",
        "scope": {
            "userId": fact.raw_user.as_deref().unwrap_or(scope.user().as_str()),
            "agentName": scope.agent(),
        },
        "revision": fact.revision,
        "updatedAt": fact.updated_at.to_string(),
        "consolidatedAt": fact.consolidated_at.map(|at| at.to_string()),
        "consolidatedFrom": fact.consolidated_from,
    });
    if let (DocumentDetail::Full, Some(map)) = (detail, value.as_object_mut()) {
        map.insert("title".to_owned(), json!(fact.title));
        map.insert("expected_valid_days".to_owned(), json!(fact.expected_valid_days));
        map.insert("lastConfirmedAt".to_owned(), json!(fact.last_confirmed_at.map(|at| at.to_string())));
        map.insert("confirmationCount".to_owned(), json!(fact.confirmation_count));
        map.insert("origin".to_owned(), json!(fact.origin));
        map.extend(fact.extra.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    value
}

/// Contents of an imported document: from DeerFlow's API, an export, or a `memory.json` of version 1.0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ImportedDocument {
    pub(crate) summaries: Summaries,
    pub(crate) facts: Vec<Fact>,
    /// Positions of malformed facts, as text.
    pub(crate) malformed: Vec<String>,
}

impl ImportedDocument {
    /// Parses a document. Malformed facts are reported separately; the caller decides whether they matter.
    pub(crate) fn read(value: &Value, now: FactTime) -> Result<Self, MemoryRefusal> {
        let wrong = |why: &str| MemoryRefusal::BadDocument(why.to_owned());
        let document = value.as_object().ok_or_else(|| wrong("it is not a JSON object"))?;
        let none = Vec::new();
        let items = match document.get("facts") {
            None | Some(Value::Null) => &none,
            Some(Value::Array(items)) if items.len() <= MAX_IMPORTED_FACTS => items,
            Some(Value::Array(_)) => return Err(wrong("it has more than 10,000 facts")),
            Some(_) => return Err(wrong("`facts` must be a list")),
        };
        let mut read =
            Self { summaries: Summaries::read(document), facts: Vec::new(), malformed: Vec::new() };
        let mut taken = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            match imported_fact(item, now, &taken) {
                Ok(fact) => {
                    taken.insert(fact.id.clone());
                    read.facts.push(fact);
                }
                Err(why) => read.malformed.push(format!("facts[{index}]: {why}")),
            }
        }
        Ok(read)
    }
}

fn imported_fact(item: &Value, now: FactTime, taken: &HashSet<FactId>) -> Result<Fact, String> {
    if item.to_string().len() > MAX_IMPORTED_FACT_BYTES {
        return Err(format!("it is larger than {} KiB", MAX_IMPORTED_FACT_BYTES / 1024));
    }
    let item = item.as_object().ok_or("it is not a JSON object")?;
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let time = |key: &str| text(key).and_then(FactTime::parse);
    let number = |key: &str| item.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let list = |key: &str| -> Vec<String> {
        let items = item.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let unknown = item.iter().filter(|(key, _)| !KNOWN_KEYS.contains(&key.as_str()));
    let content = normalize_content(text("content").unwrap_or_default());
    if content.is_empty() {
        return Err("it has no `content`".to_owned());
    }
    let created_at = time("createdAt").unwrap_or(now);
    let own_id = text("id").and_then(|id| FactId::new(id).ok()).filter(|id| !taken.contains(id));
    let id = own_id.unwrap_or_else(|| FactId::derive(&content, created_at, |id| taken.contains(id)));
    let category = FactCategory::parse(text("category").unwrap_or_default(), text("categoryExtension"));
    let confidence = item.get("confidence").and_then(Value::as_f64).unwrap_or(0.5).clamp(0.0, 1.0);
    Ok(Fact {
        title: text("title").map(normalize_content).filter(|title| !title.is_empty()),
        topics: list("topics"),
        updated_at: time("updatedAt").unwrap_or(created_at),
        source: imported_source(item.get("source")),
        source_error: text("sourceError").map(str::to_owned),
        expected_valid_days: number("expected_valid_days"),
        last_confirmed_at: time("lastConfirmedAt"),
        confirmation_count: number("confirmationCount"),
        consolidated_from: list("consolidatedFrom"),
        consolidated_at: time("consolidatedAt"),
        extra: unknown.map(|(key, value)| (key.clone(), value.clone())).collect(),
        origin: item.get("origin").and_then(|origin| serde_json::from_value(origin.clone()).ok()),
        ..Fact::new(id, &content, category, confidence, created_at)
    })
}

fn imported_source(source: Option<&Value>) -> FactSource {
    let text = |key: &str| source.and_then(|source| source.get(key)).and_then(Value::as_str);
    match source.and_then(Value::as_str) {
        Some(word) => FactSource::parse(word),
        None => FactSource {
            kind: text("type").unwrap_or("unknown").to_owned(),
            thread: text("threadId").map(str::to_owned),
        },
    }
}
