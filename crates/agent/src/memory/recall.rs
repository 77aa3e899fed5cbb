//! Recalls memory for a question: first the base text of every thread, then entries that match the question. Each fact
//! is given once per thread.

use super::rules::{MemoryMode, MemoryOf, MemoryRules, MemoryTrouble};
use crate::{Agent, RunTask};
use pudu_base::{Human, MemoryNote, Message, ThreadState};
use pudu_memory::{
    InjectedMemory, MemoryDocument, MemoryKind, MemoryOptions, RECALL_LIMITS, RecallBudget, RecallableFact,
    RecalledId, choose_recalled, count_tokens, inject, pinned,
};
use pudu_store::{RecallHits, RecallKind};
use std::collections::HashSet;

/// Prefix of the marks of recalled facts in the thread.
const FACT: &str = "fact:";
const TURN: &str = "turn:";
/// Mark of the base text.
const BASE: &str = "base";

/// Adds recalled memory to the first message that is new to the thread. If that fails, the run continues without it.
pub async fn add_recalled(agent: &Agent, task: &mut RunTask, state: &ThreadState) {
    let setup = agent.setup();
    let Some(memory) = setup.memory.as_ref().filter(|memory| memory.rules.injection) else { return };
    let is_new = |human: &&mut Human| !state.messages.contains_key(&human.id);
    let questions: Vec<String> =
        task.input.iter_mut().filter(is_new).map(|human| human.text.clone()).collect();
    if questions.is_empty() || task.compact {
        return;
    }
    let of = MemoryOf::run(task);
    match agent.0.db.is_memory_off(&of.user).await {
        Ok(false) => {}
        Ok(true) => return,
        Err(error) => {
            tracing::warn!(thread = %task.thread, %error, "answering without memory");
            return;
        }
    }
    let kind = if task.room.is_some() { MemoryKind::Room } else { MemoryKind::Person };
    match recalled(agent, &of, kind, &questions.join("\n"), given_marks(state, &of), &memory.rules).await {
        Ok(recalled) => {
            if let Some(first) = task.input.iter_mut().find(is_new) {
                first.recalled = recalled;
            }
        }
        Err(error) => tracing::warn!(thread = %task.thread, %error, "answering without memory"),
    }
}

/// Returns the memory notes of a thread, of any user.
pub(super) fn notes(state: &ThreadState) -> impl Iterator<Item = &MemoryNote> {
    state.messages.values().filter_map(|message| match &**message {
        Message::Human(human) => human.recalled.as_ref(),
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => None,
    })
}

/// Returns the marks of this memory's entries in the thread, and of the thread's own messages.
fn given_marks(state: &ThreadState, of: &MemoryOf) -> HashSet<String> {
    let own = notes(state).filter(|note| note.user == of.user).flat_map(|note| note.ids.clone());
    own.chain(state.messages.keys().map(|id| format!("{TURN}{id}"))).collect()
}

async fn recalled(
    agent: &Agent,
    of: &MemoryOf,
    kind: MemoryKind,
    asked: &str,
    given: HashSet<String>,
    rules: &MemoryRules,
) -> Result<Option<MemoryNote>, MemoryTrouble> {
    let mut document = agent.memories().read_indexed(of).await?;
    let hits = match rules.mode {
        MemoryMode::Middleware => agent.0.db.recall(&of.indexed(), asked, RECALL_LIMITS).await?,
        // The model looks up facts with its tools.
        MemoryMode::Tool => {
            document.facts.clear();
            RecallHits::default()
        }
    };
    let question = MemoryQuestion { text: asked, hits: &hits, given: &given, kind };
    let (text, ids) = choose_text(&document, &question, &rules.options);
    Ok((!text.is_empty()).then(|| MemoryNote { user: of.user.clone(), text, ids }))
}

/// A question, and the entries of memory that match its words.
struct MemoryQuestion<'q> {
    text: &'q str,
    hits: &'q RecallHits,
    /// Marks of the entries that the thread already contains.
    given: &'q HashSet<String>,
    kind: MemoryKind,
}

/// Chooses the text for a question, and returns it with its marks.
fn choose_text(
    document: &MemoryDocument,
    MemoryQuestion { text, hits, given, kind }: &MemoryQuestion<'_>,
    options: &MemoryOptions,
) -> (String, Vec<String>) {
    let base = match given.contains(BASE) {
        true => InjectedMemory::default(),
        false => base(document, hits, *kind, options),
    };
    let mut marks: Vec<String> = base.facts.iter().map(|id| format!("{FACT}{id}")).collect();
    if !base.text.is_empty() {
        marks.push(BASE.to_owned());
    }
    let known: HashSet<RecalledId> = given.iter().chain(&marks).filter_map(|mark| id_of(mark)).collect();
    let facts: Vec<RecallableFact<'_>> = document.facts.iter().map(|fact| recallable(fact, *kind)).collect();
    let room = options.max_injection_tokens.saturating_sub(count_tokens(&base.text));
    let zone = jiff::tz::TimeZone::UTC;
    let found = choose_recalled(
        hits,
        &facts,
        &RecallBudget { question: text, tokens: room, given: &known, zone: &zone },
    );
    marks.extend(found.ids.iter().map(mark_of));
    let part = |title: &str, lines: &[String]| match lines {
        [] => String::new(),
        lines => format!("{title}\n{}", lines.join("\n")),
    };
    let parts = [
        base.text,
        part("Facts that may fit the question:", &found.facts),
        part("What was said earlier, elsewhere:", &found.turns),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (parts.join("\n\n"), marks)
}

/// Returns the base text of every thread. It leaves part of the budget to the entries that match the question.
fn base(
    document: &MemoryDocument,
    hits: &RecallHits,
    kind: MemoryKind,
    options: &MemoryOptions,
) -> InjectedMemory {
    let pinned = pinned(document, options);
    if hits.facts.is_empty() && hits.turns.is_empty() {
        return inject(&document.summaries, &pinned, options, kind);
    }
    let options = MemoryOptions {
        max_injection_tokens: options.max_injection_tokens / 2,
        guaranteed_tokens: options.guaranteed_tokens.min(options.max_injection_tokens / 4),
        ..options.clone()
    };
    inject(&document.summaries, &pinned, &options, kind)
}

fn recallable(fact: &pudu_memory::Fact, kind: MemoryKind) -> RecallableFact<'_> {
    RecallableFact {
        id: fact.id.as_str(),
        category: fact.category.label(),
        confidence: fact.confidence,
        text: &fact.content,
        at: fact.last_said(),
        author: fact.author_name().filter(|_| kind == MemoryKind::Room),
    }
}

fn mark_of(id: &RecalledId) -> String {
    let kind = match id.kind {
        RecallKind::Fact => FACT,
        RecallKind::Turn => TURN,
    };
    format!("{kind}{}", id.doc)
}

fn id_of(mark: &str) -> Option<RecalledId> {
    let fact = mark.strip_prefix(FACT).map(|doc| (RecallKind::Fact, doc));
    let (kind, doc) = fact.or_else(|| mark.strip_prefix(TURN).map(|doc| (RecallKind::Turn, doc)))?;
    Some(RecalledId { kind, doc: doc.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_memory::{Fact, FactCategory, FactId, FactOrigin, FactTime, MemoryScope};
    use pudu_store::RecallHit;

    fn document(count: usize) -> MemoryDocument {
        let mut document = MemoryDocument::empty(MemoryScope::for_user(pudu_base::UserId::local()));
        document.facts = (0..count)
            .map(|n| {
                let (id, text) = (format!("f{n:02}"), format!("Fact number {n} has some words about tea"));
                let at = FactTime::from_millis(1_772_323_200_000);
                let confidence = 1.0 - n as f64 / 100.0;
                let fact = Fact::new(FactId::new(&id).unwrap(), &text, FactCategory::Context, confidence, at);
                let origin = FactOrigin { author_name: Some("Ada".into()), ..FactOrigin::default() };
                Fact { origin: Some(origin), ..fact }
            })
            .collect();
        document
    }

    fn asked(document: &MemoryDocument, hit: &str, tokens: usize, kind: MemoryKind) -> String {
        let hit = RecallHit {
            kind: RecallKind::Fact,
            doc: hit.into(),
            thread: String::new(),
            author: String::new(),
            at: 0,
            confidence: 1.0,
            text: String::new(),
            score: 1.0,
            share: 1.0,
            matched: 2,
            named: false,
        };
        let hits = RecallHits { facts: vec![hit], turns: Vec::new() };
        let question = MemoryQuestion { text: "What is my tea?", hits: &hits, given: &HashSet::new(), kind };
        let options = MemoryOptions { max_injection_tokens: tokens, ..MemoryOptions::default() };
        choose_text(document, &question, &options).0
    }

    #[test]
    fn matching_entries_have_room_beside_pinned_facts() {
        let document = document(40);
        for tokens in [120, 200, 400, 2_000] {
            let text = asked(&document, "f39", tokens, MemoryKind::Person);
            assert!(text.contains("Fact number 39"), "{tokens}: {text}");
            assert!(text.contains("Fact number 0 "), "{tokens}: {text}");
            assert!(count_tokens(&text) <= tokens + 20, "{tokens}: {text}");
        }
    }

    #[test]
    fn each_fact_shows_its_date_and_in_a_room_its_author() {
        for (kind, name) in [(MemoryKind::Person, ""), (MemoryKind::Room, "Ada: ")] {
            let text = asked(&document(20), "f19", 2_000, kind);
            for fact in ["1.00 | 2026-03-01", "0.81 | 2026-03-01"] {
                assert!(text.contains(&format!("{fact}] {name}Fact number")), "{text}");
            }
        }
    }
}
