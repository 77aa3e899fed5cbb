//! Converts the messages of a conversation: into turns for judging facts, and into index entries with their time and
//! without secrets.

use super::super::rules::MemoryOf;
use jiff::Timestamp;
use pudu_base::{Message, ThreadState};
use pudu_memory::{
    extract::{Person, SaidBy, TranscriptTurn, states_something},
    without_secrets,
};
use pudu_store::{Learning, RecallEntry, RecallKind, now};

/// Returns the turns of a conversation for judging facts.
pub(in crate::memory) fn transcript_turns(state: &ThreadState) -> Vec<TranscriptTurn> {
    state.messages.values().filter_map(|message| turn(&&**message)).collect()
}

pub(super) fn turn(message: &&Message) -> Option<TranscriptTurn> {
    let (by, text, id) = match message {
        Message::Human(human) => {
            let id = human.person.clone().unwrap_or_default();
            (SaidBy::Person(Person { id, name: human.sender.clone(), is_self: true }), &human.text, &human.id)
        }
        Message::Assistant(reply) if reply.calls.is_empty() && reply.failure.is_none() => {
            (SaidBy::Assistant, &reply.text, &reply.id)
        }
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => return None,
    };
    let (text, message) = (text.clone(), Some(id.to_string()));
    Some(TranscriptTurn { by, text, message, hidden: false, answers_question: false, forwarded: false })
}

/// Returns people's messages as entries of the index.
pub(super) fn turns(of: &MemoryOf, learning: &Learning, new: &[&Message]) -> Vec<RecallEntry> {
    let turn = |message: &&Message| match message {
        // A question or a task is not evidence of a fact.
        Message::Human(human) if states_something(&human.text) => Some(RecallEntry {
            scope: of.indexed(),
            kind: RecallKind::Turn,
            doc: human.id.to_string(),
            thread: learning.thread.to_string(),
            author: human.sender.clone().unwrap_or_default(),
            at: human.at.as_deref().and_then(said_at).unwrap_or_else(now),
            confidence: 1.0,
            text: without_secrets(&human.text),
        }),
        _ => None,
    };
    new.iter().filter_map(turn).collect()
}

/// Parses the time of a message, such as `Sunday 2026-11-22 15:04, Europe/Berlin (UTC+01:00)`, to milliseconds since
/// 1970.
pub(super) fn said_at(at: &str) -> Option<i64> {
    let (_, offset) = at.rsplit_once("(UTC")?;
    let mut words = at.split_whitespace().skip(1);
    let (date, time) = (words.next()?, words.next()?.trim_end_matches(','));
    let moment = format!("{date}T{time}:00{}", offset.trim_end_matches(')'));
    Some(moment.parse::<Timestamp>().ok()?.as_millisecond())
}
