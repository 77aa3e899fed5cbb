//! Stored events of runs, with DeerFlow's fixed names, derived from the rows of a thread's log.
//!
//! An event's number is derived from its row, and leaves room for further events between two rows. Numbers increase
//! along the thread and never change.

use super::{clock, message, task};
use pudu_base::{Message, MessageId, Seq, ThreadState, Update, UserId};
use pudu_store::{Feedback, LogEntry, RunRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Event numbers reserved for each row of the log. The row's own event has the first one.
const NUMBERS: i64 = 1 << 16;

/// Returns the row of an event number.
#[must_use]
pub fn row_of(number: i64) -> Seq {
    number.div_euclid(NUMBERS)
}

/// An event of a thread.
pub struct Event {
    /// Its number, which increases along the thread.
    pub number: i64,
    /// Its name.
    pub kind: &'static str,
    /// Its message, if it has one.
    pub message: Option<MessageId>,
    /// The event in the API's format.
    pub told: Value,
}

/// Returns the events of a row, oldest first. `state` is the thread's current state, with the fields that clients sent.
#[must_use]
pub fn of_row(thread: &str, entry: &LogEntry, state: &ThreadState) -> Vec<Event> {
    let first = entry.seq * NUMBERS;
    match &entry.update {
        Update::Message(message) => message_event(thread, entry, first, message, state).into_iter().collect(),
        Update::Task { call, stage } => {
            task::stored(call, stage).map_or_else(Vec::new, |(kind, content, metadata)| {
                let body = EventBody { kind, category: "subagent", content, metadata };
                vec![event(thread, entry, first, body)]
            })
        }
        _ => Vec::new(),
    }
}

fn message_event(
    thread: &str,
    entry: &LogEntry,
    number: i64,
    message: &Arc<Message>,
    state: &ThreadState,
) -> Option<Event> {
    let sent = state.client_fields.get(message.id()).map(AsRef::as_ref);
    let content = message::to_json(message, sent)?;
    let mut metadata = json!({ "caller": "lead_agent", "content_is_dict": true });
    let kind = match &**message {
        Message::Human(_) => "llm.human.input",
        Message::Assistant(reply) => {
            metadata["usage"] = reply.usage.as_ref().map_or(Value::Null, message::usage);
            "llm.ai.response"
        }
        Message::Tool(_) => "llm.tool.result",
        Message::Reminder(_) => "llm.system.input",
    };
    let mut event = event(thread, entry, number, EventBody { kind, category: "message", content, metadata });
    event.message = Some(message.id().clone());
    Some(event)
}

/// Fields of an event that depend on its kind.
struct EventBody<'a> {
    kind: &'static str,
    category: &'a str,
    content: Value,
    metadata: Value,
}

fn event(thread: &str, entry: &LogEntry, number: i64, body: EventBody<'_>) -> Event {
    let EventBody { kind, category, content, metadata } = body;
    let told = json!({
        "thread_id": thread,
        "run_id": entry.run,
        "event_type": kind,
        "category": category,
        "content": content,
        "metadata": metadata,
        "seq": number,
        "created_at": clock::iso(entry.at),
    });
    Event { number, kind, message: None, told }
}

/// Returns a run's first event, which precedes its first row, and the events that follow its last row: the changed
/// files, if any, and the end.
#[must_use]
pub fn edges(
    run: &RunRow,
    status: &str,
    changes: Option<Value>,
    first: Seq,
    last: Seq,
) -> [Option<Event>; 3] {
    let entry = |seq, at| LogEntry { seq, run: run.id.clone(), at, update: Update::Goal(None) };
    let thread = run.thread.as_str();
    let content = json!({ "run_id": run.id, "assistant_id": super::run::assistant(&run.assistant) });
    let body = |kind, category, content| EventBody { kind, category, content, metadata: json!({}) };
    let start = body("run.start", "trace", content);
    let start = event(thread, &entry(first, run.created), first * NUMBERS - 1, start);
    let changed = run.ended.zip(changes).map(|(at, changes)| {
        let number = last * NUMBERS + NUMBERS - 3;
        event(thread, &entry(last, at), number, body("workspace_changes", "workspace", changes))
    });
    let ended = run.ended.map(|at| {
        let content = json!({ "run_id": run.id, "status": status });
        let number = last * NUMBERS + NUMBERS - 2;
        event(thread, &entry(last, at), number, body("run.end", "trace", content))
    });
    [Some(start), changed, ended]
}

/// Feedback on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Feedback")]
pub struct ListedFeedback {
    /// Its id.
    pub feedback_id: String,
    /// The rated run.
    pub run_id: String,
    /// The thread of the run.
    pub thread_id: String,
    /// The user of the feedback.
    pub user_id: UserId,
    /// The rated message, if the feedback concerns a single one.
    pub message_id: Option<String>,
    /// 1 or -1.
    pub rating: i64,
    /// The user's comment.
    pub comment: Option<String>,
    /// When it was written.
    pub created_at: String,
}

impl From<&Feedback> for ListedFeedback {
    fn from(feedback: &Feedback) -> Self {
        Self {
            feedback_id: feedback.id.clone(),
            run_id: feedback.run.clone(),
            thread_id: feedback.thread.clone(),
            user_id: feedback.user.clone(),
            message_id: feedback.message.clone(),
            rating: feedback.rating,
            comment: feedback.comment.clone(),
            created_at: clock::iso(feedback.created),
        }
    }
}
