//! Final check of a request before encoding: replaces entries of a thread that a provider would refuse.
//!
//! A model may call a tool by a name that providers refuse, and threads from older versions contain such calls. A
//! single one would make every later request of its thread fail.

use pudu_base::{Assistant, Message, Request, ToolCall, ToolResult};
use serde_json::{Map, Value};
use std::{borrow::Cow, sync::Arc};

/// Maximum length of a tool's name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Replaces tool names outside of `[a-zA-Z0-9_-]{1,64}` and arguments that are not objects.
pub(crate) fn make_legal(request: &mut Request) {
    for message in &mut request.messages {
        if let Some(legal) = legal_message(message) {
            *message = Arc::new(legal);
        }
    }
}

/// Returns a message in its valid form; `None` if it is valid already.
fn legal_message(message: &Message) -> Option<Message> {
    match message {
        Message::Assistant(reply) if !reply.calls.iter().all(is_legal_call) => {
            let calls = reply.calls.iter().map(|call| ToolCall {
                name: legal_name(&call.name).into_owned(),
                args: if call.args.is_object() { call.args.clone() } else { Value::Object(Map::new()) },
                ..call.clone()
            });
            Some(Message::Assistant(Assistant { calls: calls.collect(), ..reply.clone() }))
        }
        Message::Tool(result) => match legal_name(&result.tool) {
            Cow::Borrowed(_) => None,
            Cow::Owned(tool) => Some(Message::Tool(ToolResult { tool, ..result.clone() })),
        },
        _ => None,
    }
}

fn is_legal_call(call: &ToolCall) -> bool {
    call.args.is_object() && matches!(legal_name(&call.name), Cow::Borrowed(_))
}

/// Returns a name that every provider accepts: the name itself, or one derived from it.
fn legal_name(name: &str) -> Cow<'_, str> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_legal) {
        return Cow::Borrowed(name);
    }
    let legal: String =
        name.chars().take(MAX_NAME_CHARS).map(|c| if is_legal(c) { c } else { '_' }).collect();
    Cow::Owned(if legal.is_empty() { "unknown_tool".to_owned() } else { legal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelSettings, WireKind, testing, wires::wire_of};
    use serde_json::json;

    /// Returns all function names in a body of any wire.
    fn names(body: &Value) -> Vec<String> {
        let own: Vec<String> = match body {
            Value::Object(map) => ["name", "tool_name"]
                .iter()
                .filter_map(|key| map.get(*key)?.as_str().map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        };
        let inner: Vec<&Value> = match body {
            Value::Object(map) => map.values().collect(),
            Value::Array(list) => list.iter().collect(),
            _ => Vec::new(),
        };
        own.into_iter().chain(inner.into_iter().flat_map(names)).collect()
    }

    #[test]
    fn invalid_names_and_arguments_are_replaced_on_every_wire() {
        let long = "x".repeat(70);
        for (name, expect) in [
            ("ls", "ls"),
            ("ls<|channel|>commentary", "ls__channel__commentary"),
            ("functions.ls", "functions_ls"),
            ("", "unknown_tool"),
            ("工具", "__"),
            (long.as_str(), &"x".repeat(64)),
        ] {
            for args in [json!({"a": 1}), json!("{\"a\": 1}"), Value::Null, json!([1])] {
                for wire in WireKind::ALL {
                    let mut request = testing::request(None);
                    request.tools = Arc::new([]);
                    for message in &mut request.messages {
                        match Arc::make_mut(message) {
                            Message::Assistant(reply) => {
                                (reply.calls[0].name, reply.calls[0].args) = (name.to_owned(), args.clone());
                            }
                            Message::Tool(result) => result.tool = name.to_owned(),
                            _ => {}
                        }
                    }
                    make_legal(&mut request);
                    let body = wire_of(wire).body(&ModelSettings::plain("m", wire), &request).unwrap();
                    let body: Value = serde_json::from_slice(&body).unwrap();
                    let names = names(&body);
                    assert!(
                        !names.is_empty() && names.iter().all(|name| name == expect),
                        "{wire:?}: {names:?}"
                    );
                    let text = body.to_string();
                    let is_whole = args.is_object();
                    assert_eq!(
                        text.contains("\"a\":1") || text.contains("\\\"a\\\":1"),
                        is_whole,
                        "{wire:?}: {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_valid_request_is_not_copied() {
        let mut request = testing::request(None);
        let before = request.messages.clone();
        make_legal(&mut request);
        assert!(before.iter().zip(&request.messages).all(|(one, other)| Arc::ptr_eq(one, other)));
    }
}
