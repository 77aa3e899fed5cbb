//! Converts the channels of a DeerFlow thread to updates of a pudu thread.

use crate::{
    messages::{self, SkippedParts},
    value::CLASS,
};
use pudu_base::{Compaction, Goal, Message, Reminder, ThreadState, Todo, Update};
use serde_json::{Map, Value};
use std::{collections::HashMap, sync::Arc};

/// ID of the message that replaces DeerFlow's summary.
const SUMMARIZED: &str = "import-summarized";
/// ID of a removal that applies to all messages before it.
const REMOVE_ALL: &str = "__remove_all__";
/// Channels that are imported separately, that a pudu thread gets from elsewhere, or that only DeerFlow's process
/// needs.
const OWN: &[&str] = &[
    "artifacts",
    "goal",
    "messages",
    "promoted",
    "sandbox",
    "summary_text",
    "thread_data",
    "title",
    "todos",
    "uploaded_files",
    "viewed_images",
];

/// A thread, read from its newest checkpoint.
#[derive(Debug, Default)]
pub(crate) struct ReadThread {
    /// Title, if the thread has one.
    pub(crate) title: Option<String>,
    /// Updates that build the thread's state from scratch.
    pub(crate) updates: Vec<Update>,
    /// Parts that were skipped.
    pub(crate) skipped: SkippedParts,
    /// Non-empty channels without an equivalent in pudu.
    pub(crate) left: Vec<String>,
}

/// Reads a thread's channels. `began` is the thread's start time, in milliseconds since 1970.
pub(crate) fn read(channels: &Map<String, Value>, began: i64) -> ReadThread {
    let title = channels.get("title").and_then(Value::as_str).map(str::to_owned);
    let mut thread = ReadThread { title, ..ReadThread::default() };
    let summary = channels.get("summary_text").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    if summary.is_some() {
        let text = "Earlier messages of this thread were summarized before the import.".to_owned();
        thread.put(Message::Reminder(Reminder { id: SUMMARIZED.into(), text }));
    }
    let messages = channels.get("messages").and_then(Value::as_array);
    for (number, value) in messages.into_iter().flatten().enumerate() {
        if let Some(message) = messages::read(value, number, &mut thread.skipped) {
            thread.put(message);
        }
    }
    if let Some(summary) = summary {
        thread.updates.push(Update::Compact(Arc::new(compaction(summary))));
    }
    let artifacts = texts(channels.get("artifacts"));
    if !artifacts.is_empty() {
        thread.updates.push(Update::Artifacts { run: "import".into(), paths: artifacts });
    }
    let todos = todos(channels.get("todos"));
    if !todos.is_empty() {
        thread.updates.push(Update::Todos(todos));
    }
    thread.updates.extend(goal(channels.get("goal"), began).map(|goal| Update::Goal(Some(goal))));
    let other = |(name, value): &(&String, &Value)| {
        !OWN.contains(&name.as_str()) && !name.contains(':') && !name.starts_with("__") && !is_empty(value)
    };
    thread.left = channels.iter().filter(other).map(|(name, _)| name.clone()).collect();
    thread
}

impl ReadThread {
    fn put(&mut self, message: Message) {
        self.updates.push(Update::Message(Arc::new(message)));
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn compaction(summary: &str) -> Compaction {
    Compaction {
        run: "import".into(),
        through: SUMMARIZED.into(),
        requests: Vec::new(),
        summary: Some(summary.to_owned()),
        cut: false,
        skills: Vec::new(),
        delegations: Vec::new(),
        before: 0,
        after: 0,
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let texts = value.and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the readable to-do items.
fn todos(value: Option<&Value>) -> Vec<Todo> {
    let todos = value.and_then(Value::as_array).into_iter().flatten();
    todos.filter_map(|todo| serde_json::from_value(todo.clone()).ok()).collect()
}

fn goal(value: Option<&Value>, began: i64) -> Option<Goal> {
    let goal = value?.as_object()?;
    let number =
        |key: &str| goal.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let objective = goal.get("objective")?.as_str()?.to_owned();
    let since = goal.get("created_at").and_then(Value::as_str).and_then(crate::time::millis).unwrap_or(began);
    Some(Goal {
        objective,
        since,
        continuations: number("continuation_count").unwrap_or_default(),
        max_continuations: number("max_continuations").unwrap_or_default(),
        stalled: number("no_progress_count").unwrap_or_default(),
        verdict: None,
    })
}

/// The `messages` channel, folded as by LangGraph's reducer: a message with a known ID replaces the earlier one, and a
/// removal removes one message, or all before it.
#[derive(Default)]
pub(crate) struct MessageFold {
    /// Messages in order. A removed one leaves a gap.
    messages: Vec<Option<Value>>,
    places: HashMap<String, usize>,
}

impl MessageFold {
    pub(crate) fn apply(&mut self, write: Value) {
        let items = match write {
            Value::Array(items) => items,
            Value::Null => return,
            one => vec![one],
        };
        for item in items {
            let Some(fields) = item.as_object() else { continue };
            let id = messages::id(fields).map(str::to_owned);
            let place = id.as_ref().and_then(|id| self.places.get(id).copied());
            match (messages::is_removal(fields), id) {
                (true, Some(id)) if id == REMOVE_ALL => *self = Self::default(),
                (true, Some(id)) => {
                    self.places.remove(&id);
                    self.put(place, None);
                }
                (true, None) => {}
                (false, id) if place.is_none() => {
                    self.places.extend(id.map(|id| (id, self.messages.len())));
                    self.messages.push(Some(item));
                }
                (false, _) => self.put(place, Some(item)),
            }
        }
    }

    fn put(&mut self, place: Option<usize>, message: Option<Value>) {
        if let Some(slot) = place.and_then(|place| self.messages.get_mut(place)) {
            *slot = message;
        }
    }

    pub(crate) fn finish(self) -> Vec<Value> {
        self.messages.into_iter().flatten().collect()
    }
}

/// Returns the value that replaces a whole channel, if a write contains one.
pub(crate) fn overwrite(write: &Value) -> Option<Value> {
    let fields = write.as_object()?;
    if fields.get(CLASS).and_then(Value::as_str) == Some("Overwrite") {
        return Some(fields.get("value").cloned().unwrap_or_default());
    }
    fields.get("__overwrite__").cloned()
}

/// Returns the updates that take a thread from its state to the one that the given updates build from scratch.
pub(crate) fn missing_updates(state: &ThreadState, updates: &[Update]) -> Vec<Update> {
    let wanted = ThreadState::fold(updates.iter().cloned());
    let gone = state.messages.keys().filter(|id| !wanted.messages.contains_key(*id)).cloned();
    let mut missing: Vec<Update> = gone.map(Update::Remove).collect();
    let new = |update: &&Update| match update {
        Update::Message(message) => state.messages.get(message.id()) != Some(message),
        Update::Todos(todos) => state.todos != *todos,
        Update::Goal(goal) => state.goal != *goal,
        Update::Compact(compaction) => state.context.compaction.as_ref() != Some(compaction),
        Update::Artifacts { paths, .. } => paths.iter().any(|path| !state.artifacts.contains_key(path)),
        _ => true,
    };
    missing.extend(updates.iter().filter(new).cloned());
    if wanted.todos.is_empty() && !state.todos.is_empty() {
        missing.push(Update::Todos(Vec::new()));
    }
    if wanted.goal.is_none() && state.goal.is_some() {
        missing.push(Update::Goal(None));
    }
    missing
}
