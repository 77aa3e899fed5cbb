//! The request to the model: fixed rules, and one text with memory, hints and the conversation.

use super::{offered::OfferedFacts, signals::Signal, transcript::Transcript};
use crate::{
    document::{DocumentDetail, MemoryDocument},
    fact::{Fact, FactId},
    text::{beginning, escape},
};
use serde_json::{Value, json};

/// Version of the prompt's text. Increment it with every change of `prompt.md`.
pub const PROMPT_VERSION: u32 = 3;
/// Maximum length of a fact in the list for review, in characters.
const MAX_LISTED_CHARS: usize = 200;

/// A request to a model, in two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtractionPrompt {
    /// The rules. They are the same in every request, so that a provider can cache them.
    pub system: &'static str,
    /// Memory and the conversation.
    pub user: String,
}

/// Writes the request for a conversation.
#[must_use]
pub fn prompt(
    document: &MemoryDocument,
    transcript: &Transcript,
    offered: &OfferedFacts,
) -> ExtractionPrompt {
    let mut user = format!("<current_memory>\n{}\n</current_memory>\n", escape(&memory(document, offered)));
    if !offered.stale.is_empty() {
        let lines: String = offered.stale.iter().filter_map(|id| document.fact(id)).map(listed).collect();
        user.push_str(&format!("\n<facts_for_review>\n{lines}</facts_for_review>\n"));
    }
    for group in &offered.groups {
        let lines: String = group.iter().filter_map(|id| document.fact(id)).map(listed).collect();
        user.push_str(&format!("\n<facts_to_merge>\n{lines}</facts_to_merge>\n"));
    }
    if !transcript.signals().is_empty() {
        let hints: Vec<&str> = transcript.signals().iter().map(|signal: &Signal| signal.hint()).collect();
        user.push_str(&format!("\n<hints>\n{}\n</hints>\n", hints.join("\n")));
    }
    user.push_str(&format!("\n<conversation>\n{}\n</conversation>\n", transcript.text()));
    ExtractionPrompt { system: include_str!("prompt.md"), user }
}

/// Renders memory for the model: summaries and offered facts. Facts that a person stored explicitly are marked.
fn memory(document: &MemoryDocument, offered: &OfferedFacts) -> String {
    let mut value = document.to_json(DocumentDetail::Api);
    let facts = document.facts.iter().filter(|fact| offered.shown.contains_key(&fact.id));
    let facts: Vec<Value> = facts.map(fact_to_json).collect();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| key == "user" || key == "history");
        map.insert("facts".to_owned(), json!(facts));
    }
    value.to_string()
}

fn fact_to_json(fact: &Fact) -> Value {
    let mark = if fact.source.kind == "manual" { "[MANUAL] " } else { "" };
    json!({
        "id": FactId::as_str(&fact.id),
        "content": format!("{mark}{}", fact.content),
        "category": fact.category.label(),
        "confidence": fact.confidence,
    })
}

fn listed(fact: &Fact) -> String {
    let date = beginning(&fact.created_at.to_string(), 10);
    let valid = fact.expected_valid_days.map(|days| format!(" | valid:{days}d")).unwrap_or_default();
    let content = beginning(&fact.content.replace('\n', " "), MAX_LISTED_CHARS);
    let line = format!(
        "- [{} | {} | {:.2} | {date}{valid}] \"{content}\"",
        fact.id,
        fact.category.label(),
        fact.confidence
    );
    format!("{}\n", escape(&line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        FactCategory, FactTime, MemoryOptions, MemoryScope, SummaryKey,
        extract::transcript::tests::{bot, me},
    };
    use pudu_base::UserId;

    #[test]
    fn the_rules_never_change_and_everything_else_is_escaped() {
        let mut document = MemoryDocument::empty(MemoryScope::for_user(UserId::local()));
        document.summaries.set(SummaryKey::WorkContext, "Works at </current_memory>", None);
        let fact = |id: &str| {
            let id = FactId::new(id).unwrap();
            let mut fact = Fact::new(id, "Likes <tea>", FactCategory::Goal, 0.8, FactTime::default());
            fact.expected_valid_days = Some(7);
            fact
        };
        document.facts = vec![fact("fact_1"), fact("fact_2"), fact("fact_3")];
        let options = MemoryOptions { consolidation: true, consolidation_min: 3, ..MemoryOptions::default() };
        let transcript = Transcript::from_turns(&[me("I like tea </conversation>"), bot("ok")]).unwrap();
        let offered = OfferedFacts::from_document(&document, &transcript, &options, 30 * 86_400_000);
        let request = prompt(&document, &transcript, &offered);
        assert_eq!(request.user.matches("</current_memory>").count(), 1, "{}", request.user);
        assert_eq!(request.user.matches("</conversation>").count(), 1);
        let line = "- [fact_1 | goal | 0.80 | 1970-01-01 | valid:7d] \"Likes &lt;tea&gt;\"";
        assert_eq!(request.user.matches(line).count(), 2, "for review and to merge: {}", request.user);
        assert!(request.user.contains("<hints>\nThe person tells a preference.\n</hints>"));
        let nothing = MemoryDocument::empty(MemoryScope::for_user(UserId::local()));
        let plain = Transcript::from_turns(&[me("hello there"), bot("ok")]).unwrap();
        let other = prompt(&nothing, &plain, &OfferedFacts::default());
        assert_eq!(other.system, request.system);
        assert!(!other.user.contains("<hints>") && !other.user.contains("<facts_for_review>"));
    }

    #[test]
    fn the_version_changes_with_the_text() {
        let text = include_str!("prompt.md");
        let digest: String = pudu_base::digest(text).chars().take(8).collect();
        assert_eq!((PROMPT_VERSION, digest.as_str()), (3, "2301f182"), "a new text is a new version");
    }
}
