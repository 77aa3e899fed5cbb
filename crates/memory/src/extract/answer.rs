//! Parses the model's answer strictly: one JSON object with `user`, `history` and `newFacts`, anywhere in the text.
//!
//! Deliberately absent: the decision whether the proposal is allowed (`apply`).

use crate::{fact::FactId, summary::SummaryKey};
use serde_json::{Map, Value};

/// Maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// Maximum number of positions in the answer at which parsing an object is tried.
const MAX_TRIES: usize = 1_000;
/// Maximum number of items read from one list of the answer.
const MAX_ITEMS: usize = 200;

/// An unusable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is too large.
    #[error("the answer is larger than {} KiB", MAX_ANSWER_BYTES / 1024)]
    TooLarge,
    /// It has no object of the requested form.
    #[error("the answer has no JSON object with `user`, `history` and `newFacts`")]
    NoObject,
    /// It removes facts while a new one is malformed, so information could be lost.
    #[error("the answer removes facts, and `newFacts[{0}]` is malformed")]
    Unsafe(usize),
}

/// Labels of a fact or summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels {
    pub(super) scope: String,
    pub(super) durability: String,
    pub(super) authority: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProposedFact {
    pub(super) content: String,
    pub(super) quote: String,
    pub(super) category: String,
    pub(super) confidence: f64,
    pub(super) labels: Labels,
    pub(super) valid_days: Option<u64>,
    pub(super) source_error: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProposedSummary {
    pub(super) key: SummaryKey,
    pub(super) text: String,
    pub(super) quote: String,
    pub(super) labels: Labels,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProposedRemoval {
    pub(super) id: FactId,
    pub(super) scope: String,
    pub(super) quote: String,
    /// Index of the new fact that replaces it. `Some(None)` if the index is invalid.
    pub(super) replacement: Option<Option<usize>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProposedMerge {
    pub(super) sources: Vec<FactId>,
    pub(super) fact: ProposedFact,
}

/// A model's proposal before verification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    pub(super) summaries: Vec<ProposedSummary>,
    /// The new facts in order; `None` for a malformed one.
    pub(super) new_facts: Vec<Option<ProposedFact>>,
    pub(super) reinforced: Vec<FactId>,
    pub(super) removals: Vec<ProposedRemoval>,
    pub(super) stale_removals: Vec<FactId>,
    pub(super) extensions: Vec<(FactId, u64)>,
    pub(super) merges: Vec<ProposedMerge>,
}

impl Proposal {
    /// Parses an answer. Prose, code fences and thinking around the object are ignored.
    ///
    /// # Errors
    /// When it is too large, has no such object, or both removes facts and has a malformed new fact.
    pub fn parse(answer: &str) -> Result<Self, AnswerError> {
        if answer.len() > MAX_ANSWER_BYTES {
            return Err(AnswerError::TooLarge);
        }
        let said = answer.rsplit_once("</think>").map_or(answer, |(_, said)| said);
        let object = find(said).or_else(|| find(answer)).ok_or(AnswerError::NoObject)?;
        let proposal = Self {
            summaries: summaries(&object),
            new_facts: items(&object, "newFacts").map(fact).collect(),
            reinforced: items(&object, "factsToReinforce")
                .filter(|item| is_of_user(item))
                .filter_map(id)
                .collect(),
            removals: items(&object, "factsToRemove").filter_map(removal).collect(),
            stale_removals: items(&object, "staleFactsToRemove")
                .filter(|item| has_reason(item))
                .filter_map(id)
                .collect(),
            extensions: items(&object, "staleFactsToExtend").filter_map(extension).collect(),
            merges: items(&object, "factsToConsolidate").filter_map(merge).collect(),
        };
        let removes = items(&object, "factsToRemove").next().is_some();
        match proposal.new_facts.iter().position(Option::is_none) {
            Some(index) if removes => Err(AnswerError::Unsafe(index)),
            _ => Ok(proposal),
        }
    }
}

fn find(text: &str) -> Option<Map<String, Value>> {
    text.match_indices('{').take(MAX_TRIES).find_map(|(at, _)| {
        let (_, rest) = text.split_at(at);
        let value = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()?;
        let Value::Object(object) = value else { return None };
        let is_it = object.get("user").is_some_and(Value::is_object)
            && object.get("history").is_some_and(Value::is_object)
            && object.get("newFacts").is_some_and(Value::is_array);
        is_it.then_some(object)
    })
}

fn items<'a>(object: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> {
    object.get(key).and_then(Value::as_array).into_iter().flatten().take(MAX_ITEMS)
}

fn text(item: &Value, key: &str) -> String {
    item.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
}

fn labels(item: &Value) -> Labels {
    let label = |key| text(item, key).to_lowercase();
    Labels { scope: label("scope"), durability: label("durability"), authority: label("authority") }
}

fn is_of_user(item: &Value) -> bool {
    labels(item).scope == "user" && has_reason(item)
}

fn has_reason(item: &Value) -> bool {
    !text(item, "reason").is_empty()
}

fn id(item: &Value) -> Option<FactId> {
    FactId::new(&text(item, "id")).ok()
}

fn summaries(object: &Map<String, Value>) -> Vec<ProposedSummary> {
    let read = |key: SummaryKey| {
        let (section, name) = key.path();
        let item = object.get(section)?.get(name)?;
        let text_now = text(item, "summary");
        let wanted = item.get("shouldUpdate").and_then(Value::as_bool) == Some(true) && !text_now.is_empty();
        wanted.then(|| ProposedSummary {
            key,
            text: text_now,
            quote: text(item, "quote"),
            labels: labels(item),
        })
    };
    SummaryKey::ALL.into_iter().filter_map(read).collect()
}

/// Parses a new fact. A fact without text or with an invalid confidence is malformed.
fn fact(item: &Value) -> Option<ProposedFact> {
    let content = crate::fact::normalize_content(item.get("content")?.as_str()?);
    let confidence = item.get("confidence").map_or(Some(0.5), Value::as_f64)?;
    let category = match item.get("category") {
        None | Some(Value::Null) => "context",
        Some(category) => category.as_str()?,
    };
    if content.is_empty() || !(0.0..=1.0).contains(&confidence) {
        return None;
    }
    Some(ProposedFact {
        content,
        quote: text(item, "quote"),
        category: category.trim().to_owned(),
        confidence,
        labels: labels(item),
        valid_days: item.get("expected_valid_days").and_then(Value::as_u64).filter(|days| *days > 0),
        source_error: Some(text(item, "sourceError")).filter(|error| !error.is_empty()),
    })
}

fn removal(item: &Value) -> Option<ProposedRemoval> {
    let replacement = match item.get("replacementFactIndex") {
        None | Some(Value::Null) => None,
        Some(index) => Some(index.as_u64().and_then(|index| usize::try_from(index).ok())),
    };
    let scope = labels(item).scope;
    has_reason(item).then_some(())?;
    Some(ProposedRemoval { id: id(item)?, scope, quote: text(item, "quote"), replacement })
}

fn extension(item: &Value) -> Option<(FactId, u64)> {
    has_reason(item).then_some(())?;
    let days = item.get("extend_by_days")?.as_u64().filter(|days| *days > 0)?;
    Some((id(item)?, days))
}

fn merge(item: &Value) -> Option<ProposedMerge> {
    let sources = item.get("sourceIds")?.as_array()?.iter().take(MAX_ITEMS);
    let mut sources: Vec<FactId> = sources.filter_map(|id| FactId::new(id.as_str()?).ok()).collect();
    sources.sort();
    sources.dedup();
    Some(ProposedMerge { sources, fact: fact(item.get("consolidated")?)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(more: &str) -> String {
        format!(r#"{{"user": {{}}, "history": {{}}, "newFacts": [{more}]}}"#)
    }

    #[test]
    fn the_object_is_found_anywhere_in_the_text() {
        let plain = answer(r#"{"content": "Likes tea", "confidence": 0.9}"#);
        let draft = answer(r#"{"content": "A draft", "confidence": 0.9}"#);
        for text in [
            plain.clone(),
            format!("Sure! Here it is:\n```json\n{plain}\n```\nAnything else?"),
            format!("<think>maybe {{\"user\": 1}} or {draft}</think>{plain}"),
            format!("{{\"note\": 1}} {plain}"),
            format!("a {{ b {plain}"),
        ] {
            let proposal = Proposal::parse(&text).unwrap();
            assert_eq!(proposal.new_facts[0].as_ref().unwrap().content, "Likes tea", "{text}");
        }
    }

    #[test]
    fn unusable_answers_are_errors() {
        let full = answer(r#"{"content": "Likes tea"}"#);
        let cut = full.trim_end_matches(['}', ']']);
        for text in [
            "",
            "I cannot do that.",
            "[]",
            "{}",
            r#"{"user": {}, "history": {}}"#,
            r#"{"user": [], "history": {}, "newFacts": []}"#,
            r#"{"user": {}, "history": {}, "newFacts": {}}"#,
            cut,
            &"{".repeat(100_000),
            &r#"{"a":"#.repeat(20_000),
        ] {
            assert_eq!(Proposal::parse(text), Err(AnswerError::NoObject), "{text:.60}");
        }
        assert_eq!(Proposal::parse(&" ".repeat(MAX_ANSWER_BYTES + 1)), Err(AnswerError::TooLarge));
    }

    #[test]
    fn malformed_facts_are_skipped_unless_information_could_be_lost() {
        for bad in [
            r#"1"#,
            r#"{}"#,
            r#"{"content": " "}"#,
            r#"{"content": 5}"#,
            r#"{"content": "a", "confidence": "high"}"#,
            r#"{"content": "a", "confidence": true}"#,
            r#"{"content": "a", "confidence": 2}"#,
            r#"{"content": "a", "category": 1}"#,
        ] {
            let text = answer(&format!(r#"{{"content": "good"}}, {bad}"#));
            let proposal = Proposal::parse(&text).unwrap();
            assert!(proposal.new_facts[0].is_some() && proposal.new_facts[1].is_none(), "{bad}");
            let removing = text.replace(r#""newFacts""#, r#""factsToRemove": [{"id": "x"}], "newFacts""#);
            assert_eq!(Proposal::parse(&removing), Err(AnswerError::Unsafe(1)), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in ".{0,300}", inside in "[ -~]{0,80}") {
            let _ = Proposal::parse(&text);
            let _ = Proposal::parse(&answer(&inside));
        }
    }
}
