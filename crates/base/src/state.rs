//! Everything a thread remembers, and the only ways to change it.

use crate::{CallId, Message, MessageId, RunId};
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a thread remembers: a fold over [`Update`]s, never edited in place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadState {
    /// Messages in the order in which they first came.
    pub messages: IndexMap<MessageId, Arc<Message>>,
    /// Files made for people: sandbox paths, in the order in which they were first presented, each with
    /// the run that presented it last.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub artifacts: IndexMap<String, RunId>,
    /// Calls that were begun and have no result yet. After a crash they tell what may have had an effect.
    #[serde(default, skip_serializing_if = "IndexSet::is_empty")]
    pub begun: IndexSet<CallId>,
}

/// One change of a thread's state: the unit that the log stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", content = "value", rename_all = "snake_case")]
pub enum Update {
    /// Adds a message, or replaces the one with its id.
    Message(Arc<Message>),
    /// Takes a message out. An unknown id changes nothing.
    Remove(MessageId),
    /// Adds files made for people; those already there keep their place.
    Artifacts {
        /// The run that presents them.
        run: RunId,
        /// Their sandbox paths.
        paths: Vec<String>,
    },
    /// A tool call starts. Written before its effect.
    Begin(CallId),
}

impl ThreadState {
    /// Applies one update: this *is* the reducers.
    pub fn apply(&mut self, update: Update) {
        match update {
            Update::Message(message) => {
                if let Message::Tool(result) = &*message {
                    self.begun.shift_remove(&result.call);
                }
                self.messages.insert(message.id().clone(), message);
            }
            Update::Remove(id) => {
                self.messages.shift_remove(&id);
            }
            Update::Artifacts { run, paths } => {
                self.artifacts.extend(paths.into_iter().map(|path| (path, run.clone())));
            }
            Update::Begin(call) => {
                self.begun.insert(call);
            }
        }
    }

    /// Folds updates over an empty state.
    #[must_use]
    pub fn fold(updates: impl IntoIterator<Item = Update>) -> Self {
        let mut state = Self::default();
        updates.into_iter().for_each(|update| state.apply(update));
        state
    }

    /// Returns the newest message.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.messages.last().map(|(_, message)| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assistant, Finish, Human, ToolCall, ToolResult, Usage};
    use serde_json::json;

    fn human(id: &str, text: &str) -> Update {
        let human = Human { id: id.into(), text: text.into(), sender: None, files: vec![] };
        Update::Message(Arc::new(Message::Human(human)))
    }

    fn whole_turn() -> Vec<Update> {
        let call =
            ToolCall { id: "c".into(), name: "ls".into(), args: json!({"path": "/mnt"}), garbled: None };
        let assistant = Assistant {
            id: "a".into(),
            text: "Let me look.".into(),
            reasoning: None,
            calls: vec![call],
            finish: Finish::Complete,
            model: Some("gpt".into()),
            usage: Some(Usage { input: 5, output: 2 }),
        };
        let result = ToolResult {
            id: "r".into(),
            call: "c".into(),
            tool: "ls".into(),
            text: "(empty)".into(),
            error: true,
        };
        vec![
            human("h", "what is there?"),
            Update::Message(Arc::new(Message::Assistant(assistant))),
            Update::Begin("c".into()),
            Update::Message(Arc::new(Message::Tool(result))),
            Update::Artifacts { run: "run".into(), paths: vec!["/mnt/user-data/outputs/a.txt".into()] },
            Update::Remove("gone".into()),
        ]
    }

    #[test]
    fn a_message_with_a_known_id_replaces_and_keeps_its_place() {
        let state = ThreadState::fold([human("1", "a"), human("2", "b"), human("1", "c")]);
        let texts: Vec<_> = state.messages.values().map(|message| message.text()).collect();
        assert_eq!(texts, ["c", "b"]);
    }

    #[test]
    fn a_call_is_begun_until_its_result_is_there() {
        let updates = whole_turn();
        assert!(ThreadState::fold(updates[..3].to_vec()).begun.contains(&CallId::from("c")));
        assert!(ThreadState::fold(updates).begun.is_empty());
    }

    #[test]
    fn what_is_stored_looks_like_this() {
        let updates = whole_turn();
        insta::assert_json_snapshot!("updates", updates);
        insta::assert_json_snapshot!("state", ThreadState::fold(updates));
    }

    #[test]
    fn what_is_stored_reads_back_as_it_was() {
        let updates = whole_turn();
        let text = serde_json::to_string(&updates).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Update>>(&text).unwrap(), updates);
        let state = ThreadState::fold(updates);
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<ThreadState>(&text).unwrap(), state);
    }
}
