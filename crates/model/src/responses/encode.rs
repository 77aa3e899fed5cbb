//! Our words in the wire's form.

use crate::{ModelSettings, parts::own_parts, thinking::merge};
use base64::prelude::{BASE64_STANDARD, Engine};
use pudu_base::{Assistant, Message, ModelImage, Request, ToolCall};
use serde_json::{Map, Value, json};

/// The key of a reply's items within its parts.
pub(super) const ITEMS: &str = "items";

/// Writes a request's body: our keys, and the operator's over them.
pub(super) fn body(settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
    let mut body = options(settings, request);
    body.insert("input".to_owned(), Value::Array(input(settings, request)));
    body.insert("stream".to_owned(), Value::Bool(true));
    body.remove("tools");
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools(settings, request));
    }
    serde_json::to_vec(&body)
}

/// Returns the keys besides input and tools.
fn options(settings: &ModelSettings, request: &Request) -> Map<String, Value> {
    let thinking = &settings.thinking;
    let mut options = Map::new();
    options.insert("model".to_owned(), json!(settings.model));
    options.insert("store".to_owned(), Value::Bool(false));
    if !request.system.is_empty() {
        options.insert("instructions".to_owned(), json!(request.system));
    }
    if thinking.supported {
        options.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(tokens) = settings.max_tokens {
        options.insert("max_output_tokens".to_owned(), tokens.into());
    }
    if let Some(temperature) = settings.temperature {
        options.insert("temperature".to_owned(), temperature.into());
    }
    merge(&mut options, &settings.body);
    thinking.apply(request.thinking, &mut options);
    // The chat wire's name of it, which rules may have.
    let effort = options.remove("reasoning_effort");
    if let Some(effort) = thinking.effort(request.thinking).map(Value::from).or(effort) {
        merge(&mut options, &Map::from_iter([("reasoning".to_owned(), json!({"effort": effort}))]));
    }
    options
}

fn input(settings: &ModelSettings, request: &Request) -> Vec<Value> {
    let mut input = Vec::new();
    for message in &request.messages {
        match message.as_ref() {
            Message::Human(human) => input.push(json!({"role": "user", "content": human.told()})),
            Message::Reminder(reminder) => input.push(json!({"role": "user", "content": reminder.told()})),
            Message::Assistant(reply) => self::reply(settings, reply, &mut input),
            Message::Tool(result) => input.push(json!({
                "type": "function_call_output",
                "call_id": settings.dialect.call_ids.form(result.call.as_str()),
                "output": result.text,
            })),
        }
    }
    if !request.images.is_empty() {
        input.push(json!({"role": "user", "content": shown(&request.images)}));
    }
    input
}

/// Writes a reply: its own items as they were where this provider made them, and what is not among them plainly.
fn reply(settings: &ModelSettings, reply: &Assistant, input: &mut Vec<Value>) {
    let own = own_parts(reply, &settings.origin());
    let items = own.and_then(|parts| parts.get(ITEMS)?.as_array()).map_or(&[][..], Vec::as_slice);
    let texts: String = items.iter().map(item_text).collect();
    let mut calls: Vec<&ToolCall> = reply.calls.iter().collect();
    let mut says = !reply.text.is_empty();
    let keeps_text = says && texts == reply.text;
    if says && !keeps_text {
        input.push(plain_text(reply));
        says = false;
    }
    // A reasoning item without its follower is refused.
    let mut waiting: Vec<Value> = Vec::new();
    for item in items {
        let kept = match item["type"].as_str() {
            Some("reasoning") => {
                waiting.push(item.clone());
                continue;
            }
            Some("message") => keeps_text.then(|| item.clone()),
            Some("function_call") => own_call(settings, item, &mut calls),
            _ => Some(item.clone()),
        };
        match kept {
            Some(item) => {
                says &= item["type"] != "message";
                input.append(&mut waiting);
                input.push(item);
            }
            None => waiting.clear(),
        }
    }
    if says {
        input.push(plain_text(reply));
    }
    input.extend(calls.into_iter().map(|call| {
        let call_id = settings.dialect.call_ids.form(call.id.as_str());
        json!({"type": "function_call", "call_id": call_id, "name": call.name, "arguments": call.args.to_string()})
    }));
}

fn plain_text(reply: &Assistant) -> Value {
    json!({"role": "assistant", "content": reply.text})
}

/// Returns the text of a message item.
pub(super) fn item_text(item: &Value) -> String {
    let parts = item["content"].as_array().filter(|_| item["type"] == "message");
    let text = |part: &Value| part["text"].as_str().or(part["refusal"].as_str()).map(str::to_owned);
    parts.into_iter().flatten().filter_map(text).collect()
}

/// Returns the item of a call that is still there, under the id that the call has now.
fn own_call(settings: &ModelSettings, item: &Value, calls: &mut Vec<&ToolCall>) -> Option<Value> {
    let args = serde_json::from_str(item["arguments"].as_str()?).unwrap_or_else(|_| json!({}));
    let at = calls.iter().position(|call| item["name"] == *call.name && args == call.args)?;
    let mut item = item.clone();
    item["call_id"] = json!(settings.dialect.call_ids.form(calls.remove(at).id.as_str()));
    Some(item)
}

/// Writes images, each behind its name.
fn shown(images: &[ModelImage]) -> Vec<Value> {
    let parts = |shown: &ModelImage| {
        let url = format!("data:{};base64,{}", shown.image.mime, BASE64_STANDARD.encode(&shown.bytes));
        [
            json!({"type": "input_text", "text": shown.image.path}),
            json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        ]
    };
    images.iter().flat_map(parts).collect()
}

fn tools(settings: &ModelSettings, request: &Request) -> Value {
    let tools = request.tools.iter().map(|spec| {
        let parameters = settings.dialect.schema.reduce(&spec.parameters);
        json!({"type": "function", "name": spec.name, "description": spec.description,
            "parameters": parameters, "strict": false})
    });
    tools.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ThinkingRules, WireKind, testing};
    use pudu_base::{ProviderParts, Thinking};

    fn settings() -> ModelSettings {
        let thinking = ThinkingRules { supported: true, takes_effort: true, ..ThinkingRules::default() };
        ModelSettings { thinking, max_tokens: Some(9), ..ModelSettings::plain("m", WireKind::Responses) }
    }

    fn written(request: &Request) -> Value {
        serde_json::from_slice(&body(&settings(), request).unwrap()).unwrap()
    }

    fn items() -> [Value; 4] {
        [
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}),
            json!({"type": "message", "id": "msg_1", "role": "assistant",
                "content": [{"type": "output_text", "text": "Yes.", "annotations": []}]}),
            json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "y"}),
            json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "bash",
                "arguments": "{\"command\": \"wc\"}"}),
        ]
    }

    fn parts(origin: &str) -> Option<ProviderParts> {
        Some(ProviderParts { origin: origin.into(), parts: json!({ITEMS: items()}) })
    }

    #[test]
    fn a_request_is_written_as_the_wire_wants_it() {
        let wire = written(&Request { thinking: Thinking::Low, ..testing::request(parts("another")) });
        assert_eq!(
            wire,
            json!({
                "model": "m", "stream": true, "store": false, "instructions": "Be brief.",
                "include": ["reasoning.encrypted_content"], "max_output_tokens": 9,
                "reasoning": {"effort": "low"},
                "input": [
                    {"role": "user", "content": wire["input"][0]["content"]},
                    {"role": "assistant", "content": "Yes."},
                    {"type": "function_call", "call_id": "c1", "name": "bash",
                        "arguments": "{\"command\":\"wc\"}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "7"},
                    {"role": "user", "content": [
                        {"type": "input_text", "text": "/a.png"},
                        {"type": "input_image", "image_url": "data:image/png;base64,cG5n", "detail": "auto"}]},
                ],
                "tools": [{"type": "function", "name": "bash", "description": "Runs a command.",
                    "parameters": {"type": "object"}, "strict": false}],
            })
        );
    }

    #[test]
    fn row_46_own_items_go_back_as_they_were_and_none_without_its_follower() {
        let mut request = testing::request(parts(&settings().origin()));
        assert_eq!(written(&request)["input"].as_array().unwrap()[1..5], items());
        let Message::Assistant(mut reply) = request.messages[1].as_ref().clone() else { panic!() };
        let mut silent = request.clone();
        silent.messages[1] = Message::Assistant(Assistant { text: String::new(), ..reply.clone() }).into();
        assert_eq!(written(&silent)["input"].as_array().unwrap()[1..3], items()[2..]);
        reply.calls.clear();
        request.messages[1] = Message::Assistant(reply).into();
        let input = written(&request)["input"].clone();
        assert_eq!(input.as_array().unwrap()[1..3], items()[..2]);
        assert_eq!(input[3]["type"], "function_call_output");
    }
}
