//! Converts the requests of all wires to one format, and refuses what the real servers refuse.

mod chat;
mod gemini;
mod messages;
mod ollama;
mod responses;

use super::{Ask, Refusal, Reply, Wire};
use serde_json::{Value, json};

/// A request's messages in the format of chat completions, and the names of its tools.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Vec<String>,
}

/// Parses a body.
pub(crate) fn read(wire: Wire, body: &Value) -> Asked {
    match wire {
        Wire::Chat => chat::read(body),
        Wire::Responses => responses::read(body),
        Wire::Messages => messages::read(body),
        Wire::Gemini => gemini::read(body),
        Wire::Ollama => ollama::read(body),
    }
}

/// Refuses what the provider would.
pub(crate) fn check(ask: &Ask) -> Result<(), Refusal> {
    match ask.wire {
        Wire::Chat => chat::check(ask),
        Wire::Responses => responses::check(ask),
        Wire::Messages => messages::check(ask),
        Wire::Gemini => gemini::check(ask),
        Wire::Ollama => ollama::check(ask),
    }
}

/// A bad request.
fn bad<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Reply::status(400).message(&message.into()))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Joins parts if all are text.
fn content(parts: Vec<Value>) -> Value {
    if parts.iter().all(|part| part["type"] == "text") {
        return parts.iter().map(|part| text(&part["text"])).collect::<String>().into();
    }
    parts.into()
}

fn text_part(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

fn image_part(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

/// Returns an image as URL, as in chat completions.
fn inline_image(media: &Value, data: &Value) -> Value {
    image_part(&format!("data:{};base64,{}", text(media), text(data)))
}

fn said(role: &str, content: impl Into<Value>) -> Value {
    json!({"role": role, "content": content.into()})
}

fn called(id: &str, name: &Value, arguments: impl Into<Value>) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.into()}})
}

fn result(id: &Value, content: impl Into<Value>) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content.into()})
}

/// Adds a call to the assistant's message, creating one if needed.
fn add_call(messages: &mut Vec<Value>, call: Value) {
    if messages.last().is_none_or(|message| message["role"] != "assistant") {
        messages.push(said("assistant", Value::Null));
    }
    let Some(message) = messages.last_mut() else { return };
    match message["tool_calls"].as_array_mut() {
        Some(calls) => calls.push(call),
        None => message["tool_calls"] = json!([call]),
    }
}
