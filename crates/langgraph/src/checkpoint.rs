//! Checkpoints: the state of a thread after a row of its log. An id is the row's position in UUID format, so that ids
//! sort like the log.

use super::{clock, message};
use pudu_base::{Goal, Message, MessageId, Seq, ThreadId, ThreadState, Todo};
use pudu_net::scrub;
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{collections::HashMap, sync::Arc};

/// Returns the id of the checkpoint after a row.
#[must_use]
pub fn id(seq: Seq) -> String {
    format!("00000000-0000-8000-8000-{seq:012x}")
}

/// Parses a checkpoint's id.
#[must_use]
pub fn position(id: &str) -> Option<Seq> {
    let digits = id.strip_prefix("00000000-0000-8000-8000-").filter(|digits| digits.len() == 12)?;
    Seq::from_str_radix(digits, 16).ok()
}

/// Parses the checkpoint that a request names in `checkpoint_id` or `checkpoint`; `None` if it names none.
///
/// # Errors
/// When no checkpoint can have this id.
pub fn wanted(id: &Value, checkpoint: &Value) -> Result<Option<Seq>, String> {
    let checkpoint_id =
        [id, &checkpoint["checkpoint_id"]].into_iter().find(|checkpoint_id| !checkpoint_id.is_null());
    let Some(checkpoint_id) = checkpoint_id else { return Ok(None) };
    let known = checkpoint_id.as_str().and_then(position);
    known.map(Some).ok_or_else(|| format!("{checkpoint_id} is not a checkpoint id"))
}

/// Returns the task id of a node that runs after a checkpoint.
pub(super) fn task(seq: Seq, node: &str) -> String {
    format!("{seq}-{node}")
}

/// Returns the step number of a state in its thread; -1 for an empty thread.
#[must_use]
pub fn step(state: &ThreadState) -> i64 {
    i64::try_from(state.messages.len()).unwrap_or(i64::MAX) - 1
}

/// Returns the nodes that follow a state: the model after a message or results, the tools after calls without results,
/// and none after an answer or a question.
#[must_use]
pub fn next(state: &ThreadState) -> &'static [&'static str] {
    let mut answered = Vec::new();
    for message in state.messages.values().rev() {
        match &**message {
            Message::Reminder(_) => {}
            // A run without input calls the model again.
            Message::Assistant(reply) if reply.failure.is_some() => {}
            Message::Tool(result) if result.question.is_some() => return &[],
            Message::Tool(result) => answered.push(&result.call),
            Message::Assistant(reply) if reply.calls.iter().any(|call| !answered.contains(&&call.id)) => {
                return &["tools"];
            }
            Message::Assistant(reply) if reply.calls.is_empty() => return &[],
            Message::Assistant(_) | Message::Human(_) => return &["model"],
        }
    }
    &[]
}

/// Renders the values of threads. Each message is rendered once and then reused.
#[derive(Default)]
pub struct ValuesWriter(HashMap<MessageId, WrittenMessage>);

struct WrittenMessage {
    message: Arc<Message>,
    text: Option<Box<RawValue>>,
}

/// The channels of a thread other than its messages.
#[derive(Serialize)]
struct ValuesRest<'v> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'v str>,
    artifacts: Vec<&'v str>,
    todos: &'v [Todo],
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_text: Option<&'v str>,
}

impl ValuesWriter {
    /// Renders the values of a state.
    pub fn write(&mut self, state: &ThreadState, title: Option<&str>) -> Box<RawValue> {
        for (id, message) in &state.messages {
            if self.0.get(id).is_none_or(|written| !Arc::ptr_eq(&written.message, message)) {
                let text = message::text(message, state.client_fields.get(id).map(AsRef::as_ref));
                let text = text.and_then(|text| RawValue::from_string(text).ok());
                self.0.insert(id.clone(), WrittenMessage { message: message.clone(), text });
            }
        }
        // The other channels cannot contain secrets found by tools; messages are scrubbed above.
        let rest = ValuesRest {
            title: title.filter(|title| !title.is_empty()),
            artifacts: state.artifacts.keys().map(String::as_str).collect(),
            todos: &state.todos,
            goal: state.goal.as_ref().map(goal),
            summary_text: state.context.compaction.as_ref().and_then(|made| made.summary.as_deref()),
        };
        let messages: Vec<&RawValue> =
            state.messages.keys().filter_map(|id| self.0.get(id)?.text.as_deref()).collect();
        let (messages, rest) = (serde_json::to_string(&messages), serde_json::to_string(&rest));
        let (messages, rest) = (messages.unwrap_or_default(), rest.unwrap_or_default());
        let rest = scrub::hide_in_talk(rest.trim_start_matches('{'));
        RawValue::from_string(format!("{{\"messages\":{messages},{rest}"))
            .unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

/// Renders the goal of a thread.
#[must_use]
pub fn goal(goal: &Goal) -> Value {
    json!({ "objective": goal.objective, "status": "active" })
}

/// A checkpoint of a thread.
pub struct Checkpoint<'c> {
    /// The thread.
    pub thread: &'c ThreadId,
    /// The position of the thread's log at this state.
    pub seq: Seq,
    /// Position of the previous checkpoint, if there is one.
    pub parent: Option<Seq>,
    /// Creation time, in milliseconds since 1970.
    pub at: i64,
    /// The run that wrote it; empty if none did.
    pub run: &'c str,
    /// Its step number in the thread; -1 for an empty thread.
    pub step: i64,
    /// Whether a client wrote it, rather than a run.
    pub written: bool,
    /// The next nodes; empty at the end.
    pub next: &'c [&'c str],
}

impl Checkpoint<'_> {
    fn reference(&self, seq: Seq) -> Value {
        json!({ "thread_id": self.thread, "checkpoint_ns": "", "checkpoint_id": id(seq), "checkpoint_map": null })
    }

    /// Renders the state that clients request, with the keys of LangGraph and DeerFlow.
    #[must_use]
    pub fn state(&self, values: &RawValue) -> Map<String, Value> {
        let source = match self.step {
            _ if self.written => "update",
            ..0 => "input",
            _ => "loop",
        };
        let mut checkpoint = self.reference(self.seq);
        checkpoint["id"] = id(self.seq).into();
        checkpoint["ts"] = clock::iso(self.at).into();
        let mut metadata =
            json!({ "source": source, "step": self.step, "parents": {}, "thread_id": self.thread });
        if !self.run.is_empty() {
            metadata["run_id"] = self.run.into();
        }
        let tasks: Vec<Value> =
            self.next.iter().map(|node| json!({ "id": task(self.seq, node), "name": node, "path": ["__pregel_pull", node], "error": null, "interrupts": [], "checkpoint": null, "state": null, "result": null })).collect();
        let told = json!({
            "values": serde_json::from_str::<Value>(values.get()).unwrap_or_default(),
            "next": self.next,
            "tasks": tasks,
            "metadata": metadata,
            "created_at": clock::iso(self.at),
            "checkpoint": checkpoint,
            "checkpoint_id": id(self.seq),
            "parent_checkpoint": self.parent.map(|parent| self.reference(parent)),
            "parent_checkpoint_id": self.parent.map(id),
            "interrupts": [],
        });
        if let Value::Object(told) = told { told } else { Map::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_ids_round_trip_and_garbage_is_refused() {
        for seq in [0, 1, 4711, (1 << 48) - 1] {
            assert_eq!(position(&id(seq)), Some(seq));
        }
        for garbage in
            ["", "1", "00000000-0000-8000-8000-00000000000g", "00000000-0000-8000-8000-0000000000001"]
        {
            assert_eq!(position(garbage), None, "{garbage}");
        }
        let by_object = json!({"checkpoint_id": id(7), "checkpoint_ns": ""});
        assert_eq!(wanted(&Value::Null, &by_object), Ok(Some(7)));
        assert_eq!(wanted(&Value::Null, &Value::Null), Ok(None));
        assert!(wanted(&json!(7), &Value::Null).is_err());
    }
}
