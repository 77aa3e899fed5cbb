//! Repairs the order of calls and results. Providers reject a history in which a tool call has no result, or a result
//! no call, as crashes, stops and edited histories leave behind. Only the request is changed, not the thread.

use super::Middleware;
use crate::{RunState, run_state};
use pudu_base::{BoxFuture, CallId, Message, Request, RunFailure, ToolCall, ToolResult};
use std::{collections::HashMap, sync::Arc};

/// Gives every call exactly one result, right after its message, in call order.
pub struct Dangling;

impl Middleware for Dangling {
    fn name(&self) -> &'static str {
        "dangling"
    }

    fn before_model<'a>(
        &'a mut self,
        _turn: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        if needs_order(&request.messages) {
            request.messages = in_order(std::mem::take(&mut request.messages));
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Returns whether the messages are out of order. Most threads are in order and need no copy.
fn needs_order(messages: &[Arc<Message>]) -> bool {
    let mut open: Vec<&CallId> = Vec::new();
    for message in messages {
        match &**message {
            Message::Tool(result) => {
                if open.first() != Some(&&result.call) {
                    return true;
                }
                open.remove(0);
            }
            _ if !open.is_empty() => return true,
            Message::Assistant(assistant) => open = assistant.calls.iter().map(|call| &call.id).collect(),
            Message::Human(_) | Message::Reminder(_) => {}
        }
    }
    !open.is_empty()
}

fn in_order(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut results: HashMap<CallId, Arc<Message>> = HashMap::new();
    for message in &messages {
        if let Message::Tool(result) = &**message {
            results.entry(result.call.clone()).or_insert_with(|| message.clone());
        }
    }
    let mut ordered = Vec::with_capacity(messages.len());
    for message in messages {
        let calls = match &*message {
            Message::Tool(_) => continue,
            Message::Assistant(assistant) => assistant.calls.clone(),
            Message::Human(_) | Message::Reminder(_) => Vec::new(),
        };
        ordered.push(message);
        ordered.extend(
            calls.iter().map(|call| results.remove(&call.id).unwrap_or_else(|| missing_result(call))),
        );
    }
    ordered
}

fn missing_result(call: &ToolCall) -> Arc<Message> {
    let text = "Error: this call was interrupted and has no result.".to_owned();
    let id = format!("missing-{}", call.id).into();
    Arc::new(Message::Tool(ToolResult { id, error: true, ..run_state::result(call, text) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{Assistant, Finish, Human};
    use serde_json::json;

    fn human(id: &str) -> Arc<Message> {
        Arc::new(Message::Human(Human::new(id, id)))
    }

    fn calls(id: &str, ids: &[&str]) -> Arc<Message> {
        let call =
            |id: &&str| ToolCall { id: (*id).into(), name: "ls".into(), args: json!({}), garbled: None };
        Arc::new(Message::Assistant(Assistant {
            id: id.into(),
            text: String::new(),
            reasoning: None,
            provider_parts: None,
            calls: ids.iter().map(call).collect(),
            finish: Finish::Complete,
            model: None,
            usage: None,
            failure: None,
        }))
    }

    fn result(call: &str) -> Arc<Message> {
        let tool_call = ToolCall { id: call.into(), name: "ls".into(), args: json!({}), garbled: None };
        let id = format!("r-{call}").into();
        Arc::new(Message::Tool(ToolResult { id, ..run_state::result(&tool_call, "ok".into()) }))
    }

    fn check(messages: Vec<Arc<Message>>, expect: &[&str]) {
        let messages = if needs_order(&messages) { in_order(messages) } else { messages };
        let ids: Vec<_> = messages.iter().map(|message| message.id().as_str()).collect();
        assert_eq!(ids, expect);
        assert!(!needs_order(&messages), "one pass is enough");
    }

    #[test]
    fn every_call_is_followed_by_one_result_and_every_result_has_a_call() {
        check(vec![human("h"), calls("a", &["1"]), result("1")], &["h", "a", "r-1"]);
        check(vec![calls("a", &["1", "2"]), result("2"), result("1")], &["a", "r-1", "r-2"]);
        check(vec![calls("a", &["1", "2"]), result("2"), human("h")], &["a", "missing-1", "r-2", "h"]);
        check(vec![result("0"), human("h"), calls("a", &["1"])], &["h", "a", "missing-1"]);
        check(vec![calls("a", &["1"]), human("h"), result("1"), result("1")], &["a", "r-1", "h"]);
    }
}
