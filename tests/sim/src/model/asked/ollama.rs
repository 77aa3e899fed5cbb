//! Requests of Ollama: text and images separately, arguments as objects.

use super::{Ask, Asked, Refusal, add_call, bad, called, image_part, list, result, said, text, text_part};
use serde_json::Value;

pub(super) fn read(body: &Value) -> Asked {
    let mut messages = Vec::new();
    for message in list(&body["messages"]) {
        let role = text(&message["role"]);
        let words = text(&message["content"]);
        if role == "tool" {
            messages.push(result(&message["tool_name"], words));
            continue;
        }
        let images = list(&message["images"]);
        if images.is_empty() {
            messages.push(said(role, words));
        } else {
            let mut parts = vec![text_part(words)];
            parts.extend(
                images.iter().map(|data| image_part(&format!("data:image/png;base64,{}", text(data)))),
            );
            messages.push(said(role, parts));
        }
        for call in list(&message["tool_calls"]) {
            let function = &call["function"];
            let call = called(text(&call["id"]), &function["name"], function["arguments"].to_string());
            add_call(&mut messages, call);
        }
    }
    let tools = list(&body["tools"]).iter().map(|tool| text(&tool["function"]["name"]).to_owned());
    Asked { messages, tools: tools.collect() }
}

/// Go reports the struct field that a value does not match.
pub(super) fn check(ask: &Ask) -> Result<(), Refusal> {
    if ask.model().is_empty() {
        return bad("model is required");
    }
    let unfit = |kind: &str, field: &str, of: &str| {
        bad(format!(
            "json: cannot unmarshal {kind} into Go struct field ChatRequest.messages.{field} of type {of}"
        ))
    };
    for message in list(&ask.body["messages"]) {
        let role = text(&message["role"]);
        if !["system", "user", "assistant", "tool"].contains(&role) {
            return bad(format!("invalid role: {role}, must be one of [system, user, assistant, tool]"));
        }
        if message["content"].is_array() {
            return unfit("array", "content", "string");
        }
        for call in list(&message["tool_calls"]) {
            if !call["function"]["arguments"].is_object() {
                return unfit("string", "tool_calls.function.arguments", "api.ToolCallFunctionArguments");
            }
        }
    }
    Ok(())
}
