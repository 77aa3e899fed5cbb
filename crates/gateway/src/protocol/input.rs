//! Answers to interrupts: decisions on calls that wait for an approval.

use super::command::{Carried, CommandRefusal, ThreadCommand, refuse};
use crate::{http::wrong_value::says_nothing, runs::approvals::decide_call};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// Keys of a response that would start a run of its own. A call that waits belongs to a run that continues.
const OF_A_NEW_RUN: [&str; 4] = ["update", "goto", "config", "metadata"];

/// Approves or denies the calls that a command names.
pub(super) async fn respond(command: &ThreadCommand<'_>) -> Carried<Value> {
    let params = &command.params;
    let mut unsupported = OF_A_NEW_RUN.into_iter();
    if let Some(key) = unsupported.find(|key| params.get(*key).is_some_and(|value| !says_nothing(value))) {
        return refuse("not_supported", format!("{key}: the run that waits continues as it was started"));
    }
    let entries = match params.get("responses") {
        Some(Value::Array(entries)) if !entries.is_empty() => {
            entries.iter().map(|entry| entry.as_object().map_or_else(not_an_object, read)).collect()
        }
        Some(_) => refuse("invalid_argument", "responses must be a list with at least one response"),
        None => read(params).map(|entry| vec![entry]),
    };
    let by = command.proof.decider(command.caller);
    for (id, approved) in entries? {
        let decided = decide_call(command.gateway, &by, command.thread, id, approved).await;
        if let Err(error) = decided {
            return match error.status() {
                StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::GONE => {
                    refuse("no_such_interrupt", error.body_text())
                }
                _ => Err(CommandRefusal::from(error)),
            };
        }
    }
    Ok(json!({}))
}

fn not_an_object<T>() -> Carried<T> {
    refuse("invalid_argument", "responses must be a list of objects")
}

/// Parses the interrupt that a response names, and the decision.
fn read(entry: &Map<String, Value>) -> Carried<(&str, bool)> {
    let Some(id) = entry.get("interrupt_id").and_then(Value::as_str) else {
        return refuse("invalid_argument", "interrupt_id is missing");
    };
    match entry.get("namespace") {
        None | Some(Value::Null) => {}
        Some(Value::Array(names)) if names.is_empty() => {}
        Some(_) => return refuse("no_such_interrupt", "interrupts are in the namespace []"),
    }
    match entry.get("response").and_then(decision) {
        Some(approved) => Ok((id, approved)),
        None => refuse(
            "invalid_argument",
            "response must be true, false, {\"approved\": true} or {\"decisions\": [{\"type\": \"approve\"}]}; `reject` denies",
        ),
    }
}

/// Parses a decision: pudu's, or one of LangChain's middleware for approvals.
fn decision(response: &Value) -> Option<bool> {
    match response {
        Value::Bool(approved) => Some(*approved),
        Value::Object(fields) => {
            match (fields.get("approved"), fields.get("decisions"), fields.get("type")) {
                (Some(Value::Bool(approved)), None, None) => Some(*approved),
                (None, Some(Value::Array(decisions)), None) if decisions.len() == 1 => {
                    decision(&decisions[0])
                }
                (None, None, Some(Value::String(kind))) => match kind.as_str() {
                    "approve" => Some(true),
                    "reject" => Some(false),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_read_in_each_form() {
        for (response, expect) in [
            (json!(true), Some(true)),
            (json!(false), Some(false)),
            (json!({"approved": false}), Some(false)),
            (json!({"decisions": [{"type": "approve"}]}), Some(true)),
            (json!({"decisions": [{"type": "reject", "message": "no"}]}), Some(false)),
            (json!({"type": "approve"}), Some(true)),
            (json!({"decisions": [{"type": "edit", "edited_action": {}}]}), None),
            (json!({"decisions": [{"type": "approve"}, {"type": "approve"}]}), None),
            (json!({"approved": "yes"}), None),
            (json!({"approved": true, "type": "reject"}), None),
            (json!("yes"), None),
            (json!(null), None),
        ] {
            assert_eq!(decision(&response), expect, "{response}");
        }
    }
}
