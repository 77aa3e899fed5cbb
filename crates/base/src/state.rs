//! Everything a thread remembers, and the only ways to change it.

use crate::{CallId, Message, MessageId};
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a thread remembers: a fold over [`Update`]s, never edited in place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadState {
    /// Messages in the order in which they first came.
    pub messages: IndexMap<MessageId, Arc<Message>>,
    /// Files made for people: sandbox paths, in the order in which they were presented.
    #[serde(default, skip_serializing_if = "IndexSet::is_empty")]
    pub artifacts: IndexSet<String>,
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
    Artifacts(Vec<String>),
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
            Update::Artifacts(paths) => self.artifacts.extend(paths),
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
