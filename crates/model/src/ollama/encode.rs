//! Encodes requests for the wire. Messages are borrowed: a long thread is serialized without being copied. Tool results
//! contain the tool's name, and the arguments of calls are objects.
//!
//! By default, the server silently truncates a prompt that exceeds its window. Each request therefore sets the window
//! that it was fitted to, and turns truncation off, so that the server refuses a prompt that does not fit.

use crate::{ModelSettings, limit, parts::own_thoughts, thinking::merge, wire};
use base64::prelude::{BASE64_STANDARD, Engine};
use pudu_base::{Assistant, Message, ModelImage, Request};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Keys of the operator's body that belong in `options`: the runner parameters in Ollama's documentation.
const OPTIONS: [&str; 23] = [
    "num_keep",
    "seed",
    "num_predict",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "tfs_z",
    "repeat_last_n",
    "temperature",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "stop",
    "num_ctx",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "use_mmap",
    "num_thread",
];

/// Parameter that limits a reply.
const LIMIT_KEYS: [&str; 1] = ["num_predict"];

/// Serializes a request's body. The operator's keys override ours.
pub(super) fn body(settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
    let mut extra = extra(settings, request);
    let model = extra.remove("model").unwrap_or_else(|| json!(settings.model));
    for ours in ["messages", "stream", "tools"] {
        extra.remove(ours);
    }
    let (tools, messages) = (tools(settings, request), messages(settings, request));
    wire::written(&OllamaBody { model, extra, stream: true, tools, messages })
}

#[derive(Serialize)]
struct OllamaBody<'a> {
    model: Value,
    #[serde(flatten)]
    extra: Map<String, Value>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<OllamaTool<'a>>,
    messages: Vec<OllamaMessage<'a>>,
}

#[derive(Serialize)]
struct OllamaTool<'a> {
    r#type: &'static str,
    function: OllamaFunction<'a>,
}

#[derive(Serialize)]
struct OllamaFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum OllamaMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<String>,
    },
    Assistant {
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thinking: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<OllamaCall<'a>>,
    },
    Tool {
        tool_name: &'a str,
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct OllamaCall<'a> {
    id: &'a str,
    function: OllamaCallFunction<'a>,
}

#[derive(Serialize)]
struct OllamaCallFunction<'a> {
    name: &'a str,
    arguments: &'a Value,
}

/// Returns the keys other than messages and tools.
fn extra(settings: &ModelSettings, request: &Request) -> Map<String, Value> {
    let (mut extra, mut options) = (Map::new(), Map::new());
    options.insert("num_ctx".to_owned(), settings.window.into());
    if let Some(tokens) = settings.max_tokens {
        options.insert("num_predict".to_owned(), tokens.into());
    }
    if let Some(temperature) = settings.temperature {
        options.insert("temperature".to_owned(), temperature.into());
    }
    for cuts in ["truncate", "shift"] {
        extra.insert(cuts.to_owned(), Value::Bool(false));
    }
    let thinking = &settings.thinking;
    if thinking.supported {
        extra.insert("think".to_owned(), thinking.thinks(request.thinking).into());
    }
    merge(&mut extra, &settings.body);
    thinking.apply(request.thinking, &mut extra);
    // LangChain's name of the option.
    if let Some(think) = extra.remove("reasoning") {
        extra.insert("think".to_owned(), think);
    }
    if let Some(effort) = thinking.effort(request.thinking) {
        extra.insert("think".to_owned(), effort.into());
    }
    for name in OPTIONS {
        options.extend(extra.remove_entry(name));
    }
    if let Some(Value::Object(own)) = extra.remove("options") {
        merge(&mut options, &own);
    }
    limit::bound(&mut options, &LIMIT_KEYS, request);
    extra.insert("options".to_owned(), Value::Object(options));
    extra
}

/// Returns the maximum number of tokens of a reply.
pub(super) fn limit(settings: &ModelSettings, request: &Request) -> Option<u64> {
    limit::limit(extra(settings, request).get("options")?.as_object()?, &LIMIT_KEYS)
}

fn messages<'a>(settings: &ModelSettings, request: &'a Request) -> Vec<OllamaMessage<'a>> {
    let user = |content| OllamaMessage::User { content, images: Vec::new() };
    let system = Some(request.system.as_str()).filter(|text| !text.is_empty());
    let messages = request.messages.iter().map(|message| match message.as_ref() {
        Message::Human(human) => user(human.to_model_text()),
        Message::Reminder(reminder) => user(reminder.to_model_text().into()),
        Message::Assistant(reply) => assistant(settings, reply),
        Message::Tool(result) => OllamaMessage::Tool {
            tool_name: &result.tool,
            tool_call_id: result.call.as_str(),
            content: &result.text,
        },
    });
    let first = system.map(|content| OllamaMessage::System { content });
    first.into_iter().chain(messages).chain(encode_images(&request.images)).collect()
}

/// Returns a user message with images and their paths, if there are any.
fn encode_images(images: &[ModelImage]) -> Option<OllamaMessage<'_>> {
    let paths: Vec<&str> = images.iter().map(|shown| shown.image.path.as_str()).collect();
    let content = paths.join("\n").into();
    let images: Vec<String> = images.iter().map(|shown| BASE64_STANDARD.encode(&shown.bytes)).collect();
    (!images.is_empty()).then_some(OllamaMessage::User { content, images })
}

fn assistant<'a>(settings: &ModelSettings, reply: &'a Assistant) -> OllamaMessage<'a> {
    let calls = reply.calls.iter().map(|call| OllamaCall {
        id: call.id.as_str(),
        function: OllamaCallFunction { name: &call.name, arguments: &call.args },
    });
    OllamaMessage::Assistant {
        content: &reply.text,
        thinking: own_thoughts(reply, &settings.name).filter(|_| settings.dialect.thoughts.is_some()),
        tool_calls: calls.collect(),
    }
}

fn tools<'a>(settings: &ModelSettings, request: &'a Request) -> Vec<OllamaTool<'a>> {
    let tools = request.tools.iter().map(|spec| OllamaTool {
        r#type: "function",
        function: OllamaFunction {
            name: &spec.name,
            description: &spec.description,
            parameters: settings.dialect.schema.reduce(&spec.parameters),
        },
    });
    tools.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, ThinkingRules, WireKind, testing};
    use pudu_base::Thinking;

    fn written(settings: &ModelSettings, request: &Request) -> Value {
        serde_json::from_slice(&body(settings, request).unwrap()).unwrap()
    }

    #[test]
    fn requests_have_the_format_of_the_wire() {
        let dialect = Dialect { thoughts: Some("thinking"), ..Dialect::PLAIN };
        let extra = json!({"num_ctx": 8192, "options": {"seed": 1}, "keep_alive": "5m", "stream": false});
        let settings = ModelSettings {
            dialect,
            body: extra.as_object().unwrap().clone(),
            max_tokens: Some(9),
            ..ModelSettings::plain("m", WireKind::Ollama)
        };
        let wire = written(&settings, &testing::request(None));
        assert_eq!(
            wire,
            json!({
                "model": "m", "stream": true, "keep_alive": "5m", "truncate": false, "shift": false,
                "options": {"num_predict": 9, "num_ctx": 8192, "seed": 1},
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": wire["messages"][1]["content"]},
                    {"role": "assistant", "content": "Yes.", "thinking": "hm", "tool_calls": [
                        {"id": "c1", "function": {"name": "bash", "arguments": {"command": "wc"}}}]},
                    {"role": "tool", "tool_name": "bash", "tool_call_id": "c1", "content": "7"},
                    {"role": "user", "content": "/a.png", "images": ["cG5n"]},
                ],
                "tools": [{"type": "function", "function":
                    {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object"}}}],
            })
        );
    }

    #[test]
    fn the_window_is_set_and_silent_truncation_is_off() {
        let plain = ModelSettings { window: 40_960, ..ModelSettings::plain("m", WireKind::Ollama) };
        let wire = written(&plain, &Request::default());
        assert_eq!(
            (&wire["options"], &wire["truncate"], &wire["shift"]),
            (&json!({"num_ctx": 40_960}), &json!(false), &json!(false))
        );
        let body = json!({"options": {"num_ctx": 9}, "truncate": true}).as_object().cloned().unwrap();
        let wire = written(&ModelSettings { body, ..plain }, &Request::default());
        assert_eq!((&wire["options"]["num_ctx"], &wire["truncate"]), (&json!(9), &json!(true)));
    }

    #[test]
    fn thinking_is_set_as_each_model_supports_it() {
        for (supported, takes_effort, thinking, expect) in [
            (false, false, Thinking::On, Value::Null),
            (true, false, Thinking::High, json!(true)),
            (true, true, Thinking::High, json!("high")),
            (true, true, Thinking::On, json!(true)),
            (true, true, Thinking::Off, json!(false)),
        ] {
            let rules = ThinkingRules { supported, takes_effort, ..ThinkingRules::default() };
            let settings = ModelSettings { thinking: rules, ..ModelSettings::plain("m", WireKind::Ollama) };
            let request = Request { thinking, ..Request::default() };
            assert_eq!(written(&settings, &request)["think"], expect, "{thinking:?}");
        }
    }
}
