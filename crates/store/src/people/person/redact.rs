//! Removes a person's messages from other users' threads.

use super::{keys::RoomMessage, shared};
use crate::{
    Result,
    engines::{Tx, query},
    error::unreadable,
    json::to_json,
};
use pudu_base::{
    Assistant, Human, Message, Reminder, TaskReport, TaskStage, ToolCall, ToolResult, Update, Usage,
};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};

/// The text that replaces a removed person's words.
const REMOVED: &str = "[removed at the person's request]";

/// Replaces messages with a notice, and deletes the snapshots of their threads.
pub(super) fn messages(tx: &mut Tx<'_>, messages: &[RoomMessage]) -> Result<()> {
    for RoomMessage { thread, seq, message, .. } in messages {
        let update = Update::Message(Arc::new(emptied(message)));
        let body = to_json(&update)?;
        let sql = "UPDATE log SET body = $1 WHERE thread = $2 AND seq = $3";
        query(sql).bind(&body).bind(thread.as_str()).bind(*seq).execute(tx)?;
    }
    let threads: BTreeSet<&str> = messages.iter().map(|message| message.thread.as_str()).collect();
    for thread in threads {
        let redacted = messages.iter().filter(|message| message.thread.as_str() == thread);
        let redacted = redacted.map(|message| (message.run.as_str(), message.message.id())).collect();
        shared::redact_traces(tx, thread, &redacted)?;
        query("DELETE FROM snapshots WHERE thread = $1").bind(thread).execute(tx)?;
        // The title may contain the person's words.
        query("UPDATE threads SET title = '' WHERE id = $1").bind(thread).execute(tx)?;
        let sql = "UPDATE runs SET title_found = '', title_left = '' WHERE thread = $1";
        query(sql).bind(thread).execute(tx)?;
    }
    let runs = messages.iter().map(|message| (message.thread.as_str(), message.run.as_str()));
    for (thread, run) in runs.collect::<BTreeSet<_>>() {
        run_rows(tx, thread, run)?;
    }
    Ok(())
}

/// Removes the texts of a run's other rows: the steps of its sub-agents, its todo list, its goal.
fn run_rows(tx: &mut Tx<'_>, thread: &str, run: &str) -> Result<()> {
    let sql = "SELECT seq, body FROM log WHERE thread = $1 AND run = $2";
    let rows: Vec<(i64, String)> = query(sql).bind(thread).bind(run).fetch_all(tx)?;
    for (seq, body) in rows {
        let update: Update =
            serde_json::from_str(&body).map_err(|error| unreadable("a thread's row", &error))?;
        let silent = match update {
            Update::Task { call, .. } => {
                let stage = TaskStage::Running { doing: Vec::new(), usage: Usage::default() };
                Update::Task { call, stage }
            }
            Update::Todos(_) => Update::Todos(Vec::new()),
            Update::Goal(_) => Update::Goal(None),
            _ => continue,
        };
        let body = to_json(&silent)?;
        let sql = "UPDATE log SET body = $1 WHERE thread = $2 AND seq = $3";
        query(sql).bind(&body).bind(thread).bind(seq).execute(tx)?;
    }
    Ok(())
}

/// Returns a message without its text. Calls keep their names and ids, so that results still match them.
fn emptied(message: &Message) -> Message {
    match message.clone() {
        Message::Human(human) => Message::Human(Human::new(human.id.as_str(), REMOVED)),
        Message::Assistant(mut reply) => {
            let empty = |call: ToolCall| ToolCall { args: Value::Object(Map::new()), garbled: None, ..call };
            reply.calls = reply.calls.into_iter().map(empty).collect();
            if !reply.text.is_empty() {
                reply.text = REMOVED.to_owned();
            }
            Message::Assistant(Assistant { reasoning: None, provider_parts: None, ..reply })
        }
        Message::Tool(result) => Message::Tool(ToolResult {
            text: REMOVED.to_owned(),
            question: None,
            images: Vec::new(),
            decision: None,
            decisions: Vec::new(),
            task: result.task.map(|task| Box::new(TaskReport { text: String::new(), digest: None, ..*task })),
            ..result
        }),
        Message::Reminder(reminder) => Message::Reminder(Reminder { text: REMOVED.to_owned(), ..reminder }),
    }
}
