//! Memory that is told with a question: at first what is always told, and then what fits the question, each fact once
//! a thread.

use super::rules::{MemoryMode, MemoryOf, MemoryRules, MemoryTrouble};
use crate::{Client, RunTask};
use pudu_base::{Human, MemoryNote, Message, ThreadState};
use pudu_memory::{
    InjectedMemory, MemoryDocument, MemoryOptions, RECALL_LIMITS, RecallBudget, RecallableFact, RecalledId,
    choose_recalled, count_tokens, inject, pinned,
};
use pudu_store::{RecallHits, RecallKind};
use std::collections::HashSet;

/// Marks of what was told, in the thread.
const FACT: &str = "fact:";
const TURN: &str = "turn:";
/// The mark of what is always told.
const BASE: &str = "base";

/// Puts what is remembered into the first message that the thread does not have yet. Without it the run goes on.
pub(crate) async fn tell(client: &Client, task: &mut RunTask, state: &ThreadState) {
    let setup = client.setup();
    let Some(memory) = setup.memory.as_ref().filter(|memory| memory.rules.injection) else { return };
    let is_new = |human: &&mut Human| !state.messages.contains_key(&human.id);
    let asked: Vec<String> = task.input.iter_mut().filter(is_new).map(|human| human.text.clone()).collect();
    if asked.is_empty() || task.compact {
        return;
    }
    let of = MemoryOf::run(task);
    match client.0.db.is_memory_off(&of.user).await {
        Ok(false) => {}
        Ok(true) => return,
        Err(error) => {
            tracing::warn!(thread = %task.thread, %error, "answering without memory");
            return;
        }
    }
    match recalled(client, &of, &asked.join("\n"), given(state, &of), &memory.rules).await {
        Ok(recalled) => {
            if let Some(first) = task.input.iter_mut().find(is_new) {
                first.recalled = recalled;
            }
        }
        Err(error) => tracing::warn!(thread = %task.thread, %error, "answering without memory"),
    }
}

/// Returns what a thread was told of memory, whosoever it is.
pub(super) fn notes(state: &ThreadState) -> impl Iterator<Item = &MemoryNote> {
    state.messages.values().filter_map(|message| match &**message {
        Message::Human(human) => human.recalled.as_ref(),
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => None,
    })
}

/// Returns the marks of what a thread was told of this memory, and of what was said in it.
fn given(state: &ThreadState, of: &MemoryOf) -> HashSet<String> {
    let own = notes(state).filter(|note| note.user == of.user).flat_map(|note| note.ids.clone());
    own.chain(state.messages.keys().map(|id| format!("{TURN}{id}"))).collect()
}

async fn recalled(
    client: &Client,
    of: &MemoryOf,
    asked: &str,
    given: HashSet<String>,
    rules: &MemoryRules,
) -> Result<Option<MemoryNote>, MemoryTrouble> {
    let mut document = client.memories().read(of).await?;
    let hits = match rules.mode {
        MemoryMode::Middleware => client.0.db.recall(&of.indexed(), asked, RECALL_LIMITS).await?,
        // The model looks facts up by itself.
        MemoryMode::Tool => {
            document.facts.clear();
            RecallHits::default()
        }
    };
    let (text, ids) = told(&document, &hits, &given, &rules.options);
    Ok((!text.is_empty()).then(|| MemoryNote { user: of.user.clone(), text, ids }))
}

/// Chooses what is told, and the marks of it.
fn told(
    document: &MemoryDocument,
    hits: &RecallHits,
    given: &HashSet<String>,
    options: &MemoryOptions,
) -> (String, Vec<String>) {
    let base = match given.contains(BASE) {
        true => InjectedMemory::default(),
        false => inject(&document.summaries, &pinned(document, options), options),
    };
    let mut marks: Vec<String> = base.facts.iter().map(|id| format!("{FACT}{id}")).collect();
    if !base.text.is_empty() {
        marks.push(BASE.to_owned());
    }
    let known: HashSet<RecalledId> = given.iter().chain(&marks).filter_map(|mark| id_of(mark)).collect();
    let facts: Vec<RecallableFact<'_>> = document.facts.iter().map(recallable).collect();
    let room = options.max_injection_tokens.saturating_sub(count_tokens(&base.text));
    let zone = jiff::tz::TimeZone::UTC;
    let found = choose_recalled(hits, &facts, &RecallBudget { tokens: room, given: &known, zone: &zone });
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

fn recallable(fact: &pudu_memory::Fact) -> RecallableFact<'_> {
    let (id, category) = (fact.id.as_str(), fact.category.label());
    RecallableFact { id, category, confidence: fact.confidence, text: &fact.content }
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
