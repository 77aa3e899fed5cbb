//! Requests of chat completions.

use super::{Ask, Asked, Refusal, bad, list, text};
use serde_json::Value;

pub(super) fn read(body: &Value) -> Asked {
    let tools = list(&body["tools"]).iter().map(|tool| text(&tool["function"]["name"]).to_owned());
    Asked { messages: list(&body["messages"]).to_vec(), tools: tools.collect() }
}

pub(super) fn check(ask: &Ask) -> Result<(), Refusal> {
    if ask.messages().is_empty() {
        return bad("'messages' must be a non-empty array");
    }
    check_pairs(ask)
}

/// Checks that each call has a result directly after it, and each result a call.
fn check_pairs(ask: &Ask) -> Result<(), Refusal> {
    let mut open: Vec<&str> = Vec::new();
    for message in ask.messages() {
        if message["role"] == "tool" {
            let id = text(&message["tool_call_id"]);
            let Some(at) = open.iter().position(|open| *open == id) else {
                return bad(
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                );
            };
            open.remove(at);
            continue;
        }
        unanswered(&open)?;
        let calls = list(&message["tool_calls"]).iter();
        open = calls.map(|call| text(&call["id"])).collect();
    }
    unanswered(&open)
}

fn unanswered(open: &[&str]) -> Result<(), Refusal> {
    let Some(id) = open.first() else { return Ok(()) };
    bad(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
         following tool_call_ids did not have response messages: {id}"
    ))
}
