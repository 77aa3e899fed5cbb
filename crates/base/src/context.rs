//! Parts of a thread that requests to models omit or replace with a summary. The thread keeps all messages; this state
//! records which ones a model still sees. After a restart, the same state gives the same requests.
//!
//! Deliberately absent: when something is omitted, and the replacement text. The harness decides both.

use crate::{CallId, MessageId, RunId};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How models see a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextState {
    /// Tool results up to and including this message are masked: replaced by pointers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<MessageId>,
    /// Sandbox paths of the files with the full text of masked results.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub kept: IndexMap<MessageId, String>,
    /// The omitted beginning, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Arc<Compaction>>,
    /// Number of summaries made by the run of the newest compaction.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub summaries: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A thread's beginning that requests omit, and the contents of the block that replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The run that omitted it.
    pub run: RunId,
    /// The last omitted message.
    pub through: MessageId,
    /// Omitted messages of people that the block still shows, in order: the current request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<MessageId>,
    /// The newest summary, made by a model; `None` if there never was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Whether some omitted messages are not covered by the summary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Paths of the instructions of skills that were read, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Tasks delegated to sub-agents, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Delegation>,
    /// Estimated tokens of a request before the compaction.
    pub before: u64,
    /// Estimated tokens of a request after it.
    pub after: u64,
}

/// A task delegated to a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// The call that delegated it.
    pub call: CallId,
    /// Short description of the task.
    pub task: String,
    /// The kind of sub-agent.
    pub agent: String,
    /// Its progress.
    pub status: DelegationStatus,
    /// The beginning of the report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub brief: String,
}

/// Progress of a delegated task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegationStatus {
    /// It has no result yet.
    InProgress,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It timed out.
    TimedOut,
    /// A person stopped it.
    Cancelled,
}

impl ContextState {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Masks results up to a message. Earlier ones stay masked.
    pub(crate) fn mask(&mut self, through: MessageId, kept: IndexMap<MessageId, String>) {
        self.masked = Some(through);
        self.kept.extend(kept);
    }

    /// Omits the thread's beginning. `gone` returns whether a message belongs to the beginning; the file of its result
    /// is then no longer recorded.
    pub(crate) fn compact(&mut self, compaction: Arc<Compaction>, gone: impl Fn(&MessageId) -> bool) {
        let last = self.compaction.as_ref();
        let same = last.is_some_and(|last| last.run == compaction.run);
        let fresh =
            compaction.summary.is_some() && last.is_none_or(|last| last.summary != compaction.summary);
        self.summaries = if same { self.summaries } else { 0 } + u32::from(fresh);
        self.kept.retain(|id, _| !gone(id));
        self.compaction = Some(compaction);
    }

    /// Forgets a message that is removed from the thread. A boundary at this message moves to the previous one.
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

    /// Returns the number of summaries that a run has made.
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
    fn omitted_results_no_longer_record_a_file() {
        let mut state = ThreadState::fold([human("1"), human("2"), mask("2", &["1", "2"])]);
        state.apply(compaction("a", "1", None, true));
        assert_eq!(state.context.kept.keys().map(MessageId::as_str).collect::<Vec<_>>(), ["2"]);
    }

    #[test]
    fn a_boundary_at_a_removed_message_moves_to_the_previous_one() {
        let updates = [human("1"), human("2"), mask("2", &[]), compaction("a", "2", None, true)];
        let mut state = ThreadState::fold(updates);
        state.apply(Update::Remove("2".into()));
        assert_eq!(state.context.masked, Some("1".into()));
        assert_eq!(state.context.compaction.as_ref().unwrap().through, "1".into());
        state.apply(Update::Remove("1".into()));
        assert!(state.context.masked.is_none() && state.context.compaction.is_none());
    }
}
