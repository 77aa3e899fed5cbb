//! Parts of a thread that requests to models leave out, or have in other words: the thread keeps the messages, and this
//! state records the ones that a model still sees. After a restart, the same state gives the same requests.
//!
//! Deliberately absent: the time and the wording of an omission. Those are the harness's.

use crate::{CallId, MessageId, RunId};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// View that models have of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextState {
    /// Tool results up to this message, itself included, are pointers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<MessageId>,
    /// Files in which masked results were kept when they were masked: sandbox paths.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub kept: IndexMap<MessageId, String>,
    /// The beginning that is left out, if any is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Arc<Compaction>>,
    /// How many summaries the run of the newest one has made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub summaries: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A thread's beginning as it is left out of requests, and the block in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The run that left it out.
    pub run: RunId,
    /// The last message that is left out.
    pub through: MessageId,
    /// People's messages among those left out that are shown all the same, in order: the request at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<MessageId>,
    /// The newest summary, made by a model; none if there never was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Whether something is left out that the summary does not cover.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Skills that were read: the paths of their instructions, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Work that was given to sub-agents, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Delegation>,
    /// Tokens of a request before, as they were estimated.
    pub before: u64,
    /// Tokens of a request after it.
    pub after: u64,
}

/// A piece of work that was given to a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// The call that gave it.
    pub call: CallId,
    /// The work, in a few words.
    pub task: String,
    /// The kind of sub-agent.
    pub agent: String,
    /// How far it came.
    pub status: DelegationStatus,
    /// How the report begins.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub brief: String,
}

/// How far a piece of work came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegationStatus {
    /// It has no result yet.
    InProgress,
    /// It was done.
    Completed,
    /// It was not done.
    Failed,
    /// It took too long.
    TimedOut,
    /// A person stopped it.
    Cancelled,
}

impl ContextState {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Masks results. Those that are masked already stay so.
    pub(crate) fn mask(&mut self, through: MessageId, kept: IndexMap<MessageId, String>) {
        self.masked = Some(through);
        self.kept.extend(kept);
    }

    /// Leaves out a beginning. `gone` returns whether a message is left out with it: the place of its result is not
    /// needed any more.
    pub(crate) fn compact(&mut self, compaction: Arc<Compaction>, gone: impl Fn(&MessageId) -> bool) {
        let last = self.compaction.as_ref();
        let same = last.is_some_and(|last| last.run == compaction.run);
        let fresh =
            compaction.summary.is_some() && last.is_none_or(|last| last.summary != compaction.summary);
        self.summaries = if same { self.summaries } else { 0 } + u32::from(fresh);
        self.kept.retain(|id, _| !gone(id));
        self.compaction = Some(compaction);
    }

    /// Forgets a message that is taken out of the thread: a mark at it moves to the message before.
    pub(crate) fn forget(&mut self, id: &MessageId, before: Option<&MessageId>) {
        self.kept.shift_remove(id);
        if self.masked.as_ref() == Some(id) {
            self.masked = before.cloned();
        }
        if let Some(compaction) = self.compaction.take() {
            self.compaction = match before {
                _ if compaction.through != *id => Some(compaction),
                Some(before) => {
                    Some(Arc::new(Compaction { through: before.clone(), ..(*compaction).clone() }))
                }
                None => None,
            };
        }
    }

    /// Returns how many summaries a run has made.
    #[must_use]
    pub fn summaries_of(&self, run: &RunId) -> u32 {
        let same = self.compaction.as_ref().is_some_and(|compaction| compaction.run == *run);
        if same { self.summaries } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Human, Message, ThreadState, Update};

    fn human(id: &str) -> Update {
        Update::Message(Arc::new(Message::Human(Human::new(id, id))))
    }

    fn compaction(run: &str, through: &str, summary: Option<&str>, cut: bool) -> Update {
        Update::Compact(Arc::new(Compaction {
            run: run.into(),
            through: through.into(),
            requests: Vec::new(),
            summary: summary.map(str::to_owned),
            cut,
            skills: Vec::new(),
            delegations: Vec::new(),
            before: 2,
            after: 1,
        }))
    }

    fn mask(through: &str, kept: &[&str]) -> Update {
        let kept = kept.iter().map(|id| ((*id).into(), format!("/{id}"))).collect();
        Update::Mask { through: through.into(), kept }
    }

    #[test]
    fn only_fresh_summaries_of_the_same_run_are_counted() {
        let mut state = ThreadState::fold([human("1"), human("2"), human("3")]);
        for (update, run, expect) in [
            (compaction("a", "1", None, true), "a", 0),
            (compaction("a", "1", Some("x"), false), "a", 1),
            (compaction("a", "2", Some("x"), true), "a", 1),
            (compaction("a", "2", Some("y"), false), "a", 2),
            (compaction("b", "3", Some("z"), false), "a", 0),
            (compaction("b", "3", Some("z"), true), "b", 1),
        ] {
            state.apply(update);
            assert_eq!(state.context.summaries_of(&run.into()), expect);
        }
    }

    #[test]
    fn what_is_left_out_with_the_beginning_needs_no_file_any_more() {
        let mut state = ThreadState::fold([human("1"), human("2"), mask("2", &["1", "2"])]);
        state.apply(compaction("a", "1", None, true));
        assert_eq!(state.context.kept.keys().map(MessageId::as_str).collect::<Vec<_>>(), ["2"]);
    }

    #[test]
    fn what_reaches_up_to_a_message_that_is_taken_out_reaches_up_to_the_one_before() {
        let updates = [human("1"), human("2"), mask("2", &[]), compaction("a", "2", None, true)];
        let mut state = ThreadState::fold(updates);
        state.apply(Update::Remove("2".into()));
        assert_eq!(state.context.masked, Some("1".into()));
        assert_eq!(state.context.compaction.as_ref().unwrap().through, "1".into());
        state.apply(Update::Remove("1".into()));
        assert!(state.context.masked.is_none() && state.context.compaction.is_none());
    }
}
