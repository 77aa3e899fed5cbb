//! Encodes requests for the wire. Messages are borrowed: a long thread is serialized without being copied. Each request
//! repeats the bytes of the previous one.

use crate::{ModelSettings, limit, paragraphs::PARAGRAPH, parts::own_parts, thinking::merge, wire};
use base64::prelude::{BASE64_STANDARD, Engine};
use pudu_base::{Assistant, Message, ModelImage, Request, ToolCall};
use pudu_net::json;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Key of a reply's items within its parts.
pub(super) const ITEMS: &str = "items";

/// Serializes a request's body. The operator's keys override ours.
pub(super) fn body(settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
    let mut options = options(settings, request);
    for ours in ["input", "stream", "tools"] {
        options.remove(ours);
    }
    let instructions = Some(request.system.as_str())
        .filter(|text| !text.is_empty() && !options.contains_key("instructions"));
    let mut writer = ItemWriter { settings, origin: settings.origin(), input: Vec::new() };
    request.messages.iter().for_each(|message| writer.message(message));
    if !request.images.is_empty() {
        writer.input.push(InputItem::Shown { role: "user", content: encode_images(&request.images) });
    }
    let (tools, input) = (tools(settings, request), writer.input);
    wire::written(&ResponsesBody { options, stream: true, instructions, tools, input })
}

#[derive(Serialize)]
struct ResponsesBody<'a> {
    #[serde(flatten)]
    options: Map<String, Value>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTool<'a>>,
    /// Must be the last field, so that the bytes before it never change.
    input: Vec<InputItem<'a>>,
}

#[derive(Serialize)]
struct FunctionTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputItem<'a> {
    Said {
        role: &'static str,
        content: Cow<'a, str>,
    },
    Shown {
        role: &'static str,
        content: Vec<ShownPart<'a>>,
    },
    Call {
        r#type: &'static str,
        call_id: Cow<'a, str>,
        name: &'a str,
        arguments: String,
    },
    Output {
        r#type: &'static str,
        call_id: Cow<'a, str>,
        output: &'a str,
    },
    /// An unchanged item of the provider's reply.
    Kept(&'a Value),
    /// The item of a call whose ID has changed.
    Renamed(Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ShownPart<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String, detail: &'static str },
}

/// Field that limits a reply.
const LIMIT_KEYS: [&str; 1] = ["max_output_tokens"];

/// Returns the keys other than instructions, input and tools.
fn options(settings: &ModelSettings, request: &Request) -> Map<String, Value> {
    let thinking = &settings.thinking;
    let mut options = Map::new();
    options.insert("model".to_owned(), json!(settings.model));
    options.insert("store".to_owned(), Value::Bool(false));
    // A model without reasoning refuses this option.
    if thinking.supported || settings.body.contains_key("reasoning") {
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
    // The chat wire's name for the effort, which thinking rules may use.
    let effort = options.remove("reasoning_effort");
    if let Some(effort) = thinking.effort(request.thinking).map(Value::from).or(effort) {
        merge(&mut options, &Map::from_iter([("reasoning".to_owned(), json!({"effort": effort}))]));
    }
    limit::bound(&mut options, &LIMIT_KEYS, request);
    options
}

/// Returns the maximum number of tokens of a reply.
pub(super) fn limit(settings: &ModelSettings, request: &Request) -> Option<u64> {
    limit::limit(&options(settings, request), &LIMIT_KEYS)
}

/// Encodes messages as items.
struct ItemWriter<'a> {
    settings: &'a ModelSettings,
    origin: String,
    input: Vec<InputItem<'a>>,
}

impl<'a> ItemWriter<'a> {
    fn message(&mut self, message: &'a Message) {
        match message {
            Message::Human(human) => self.say("user", human.to_model_text()),
            Message::Reminder(reminder) => self.say("user", reminder.to_model_text().into()),
            Message::Assistant(reply) => self.reply(reply),
            Message::Tool(result) => self.input.push(InputItem::Output {
                r#type: "function_call_output",
                call_id: self.settings.dialect.call_ids.form(result.call.as_str()),
                output: &result.text,
            }),
        }
    }

    fn say(&mut self, role: &'static str, content: Cow<'a, str>) {
        self.input.push(InputItem::Said { role, content });
    }

    /// Encodes a reply: the provider's own items unchanged, and everything else in its plain form.
    fn reply(&mut self, reply: &'a Assistant) {
        let own = own_parts(reply, &self.origin);
        let items = own.and_then(|parts| parts.get(ITEMS)?.as_array()).map_or(&[][..], Vec::as_slice);
        let mut rest = Some(reply.text.as_str());
        for words in items.iter().flat_map(item_texts) {
            rest = rest.and_then(|rest| {
                rest.strip_prefix(words).or_else(|| rest.strip_prefix(PARAGRAPH)?.strip_prefix(words))
            });
        }
        let keeps_text = rest == Some("") && !reply.text.is_empty();
        if !keeps_text && !reply.text.is_empty() {
            self.say("assistant", reply.text.as_str().into());
        }
        let mut calls: Vec<&ToolCall> = reply.calls.iter().collect();
        // The provider refuses a reasoning item without the item that followed it.
        let mut waiting = Vec::new();
        for item in items {
            let part = match item["type"].as_str() {
                Some("reasoning") => {
                    waiting.push(InputItem::Kept(item));
                    continue;
                }
                Some("message") => keeps_text.then_some(InputItem::Kept(item)),
                Some("function_call") => self.own_call(item, &mut calls),
                _ => Some(InputItem::Kept(item)),
            };
            match part {
                Some(item) => {
                    self.input.append(&mut waiting);
                    self.input.push(item);
                }
                None => waiting.clear(),
            }
        }
        let ids = self.settings.dialect.call_ids;
        self.input.extend(calls.into_iter().map(|call| InputItem::Call {
            r#type: "function_call",
            call_id: ids.form(call.id.as_str()),
            name: &call.name,
            arguments: call.args.to_string(),
        }));
    }

    /// Returns the item of a call that still exists, with the call's current ID.
    fn own_call(&self, item: &'a Value, calls: &mut Vec<&'a ToolCall>) -> Option<InputItem<'a>> {
        let args = json::parse(item["arguments"].as_str()?.as_bytes()).unwrap_or_else(|_| json!({}));
        let at = calls.iter().position(|call| item["name"] == *call.name && args == call.args)?;
        let id = self.settings.dialect.call_ids.form(calls.remove(at).id.as_str());
        if item["call_id"] == *id {
            return Some(InputItem::Kept(item));
        }
        let mut item = item.clone();
        item["call_id"] = json!(id);
        Some(InputItem::Renamed(item))
    }
}

/// Returns the texts of a message item; other items have none.
pub(super) fn item_texts(item: &Value) -> impl Iterator<Item = &str> {
    let parts = item["content"].as_array().filter(|_| item["type"] == "message");
    parts.into_iter().flatten().filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()))
}

/// Encodes images, each preceded by its path.
fn encode_images(images: &[ModelImage]) -> Vec<ShownPart<'_>> {
    let parts = |shown: &'_ ModelImage| {
        let image_url = format!("data:{};base64,{}", shown.image.mime, BASE64_STANDARD.encode(&shown.bytes));
        ShownPart::InputImage { image_url, detail: "auto" }
    };
    images.iter().flat_map(|shown| [ShownPart::InputText { text: &shown.image.path }, parts(shown)]).collect()
}

fn tools<'a>(settings: &ModelSettings, request: &'a Request) -> Vec<FunctionTool<'a>> {
    let tools = request.tools.iter().map(|spec| FunctionTool {
        r#type: "function",
        name: &spec.name,
        description: &spec.description,
        parameters: settings.dialect.schema.reduce(&spec.parameters),
        strict: false,
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
    fn requests_have_the_format_of_the_wire() {
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
    fn encrypted_thoughts_are_requested_from_reasoning_models() {
        let asks =
            |settings: &ModelSettings| options(settings, &testing::request(None)).contains_key("include");
        let mut plain = ModelSettings::plain("m", WireKind::Responses);
        assert!(!asks(&plain), "models without reasoning refuse it");
        plain.body.insert("reasoning".to_owned(), json!({"effort": "low"}));
        assert!(asks(&plain) && asks(&settings()));
    }

    #[test]
    fn row_46_own_items_are_sent_back_unchanged_with_the_following_item() {
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
