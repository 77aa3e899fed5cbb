//! Our words in the wire's form. Results of tools name their tool, and calls have objects as arguments.

use crate::{ModelSettings, thinking::merge};
use base64::prelude::{BASE64_STANDARD, Engine};
use pudu_base::{Assistant, Message, Request};
use serde_json::{Map, Value, json};

/// Keys of an operator's body that belong into `options`: the runner's parameters in Ollama's documents.
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

/// Writes a request's body: our keys, and the operator's over them.
pub(super) fn body(settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(settings.model));
    body.extend(extra(settings, request));
    body.insert("messages".to_owned(), Value::Array(messages(settings, request)));
    body.insert("stream".to_owned(), Value::Bool(true));
    body.remove("tools");
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools(settings, request));
    }
    serde_json::to_vec(&body)
}

/// Returns the keys besides messages and tools.
fn extra(settings: &ModelSettings, request: &Request) -> Map<String, Value> {
    let (mut extra, mut options) = (Map::new(), Map::new());
    if let Some(tokens) = settings.max_tokens {
        options.insert("num_predict".to_owned(), tokens.into());
    }
    if let Some(temperature) = settings.temperature {
        options.insert("temperature".to_owned(), temperature.into());
    }
    let thinking = &settings.thinking;
    if thinking.supported {
        extra.insert("think".to_owned(), thinking.thinks(request.thinking).into());
    }
    merge(&mut extra, &settings.body);
    thinking.apply(request.thinking, &mut extra);
    // The name that LangChain has for it.
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
    if !options.is_empty() {
        extra.insert("options".to_owned(), Value::Object(options));
    }
    extra
}

fn messages(settings: &ModelSettings, request: &Request) -> Vec<Value> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.extend(request.messages.iter().map(|message| match message.as_ref() {
        Message::Human(human) => json!({"role": "user", "content": human.told()}),
        Message::Reminder(reminder) => json!({"role": "user", "content": reminder.told()}),
        Message::Assistant(reply) => assistant(settings, reply),
        Message::Tool(result) => {
            json!({"role": "tool", "tool_name": result.tool, "content": result.text})
        }
    }));
    if !request.images.is_empty() {
        let paths: Vec<&str> = request.images.iter().map(|shown| shown.image.path.as_str()).collect();
        let images: Vec<String> =
            request.images.iter().map(|shown| BASE64_STANDARD.encode(&shown.bytes)).collect();
        messages.push(json!({"role": "user", "content": paths.join("\n"), "images": images}));
    }
    messages
}

fn assistant(settings: &ModelSettings, reply: &Assistant) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if let Some(thoughts) = reply.reasoning.as_ref().filter(|_| settings.dialect.thoughts.is_some()) {
        message["thinking"] = json!(thoughts);
    }
    if !reply.calls.is_empty() {
        let call = |(name, arguments)| json!({"function": {"name": name, "arguments": arguments}});
        message["tool_calls"] = reply.calls.iter().map(|made| call((&made.name, &made.args))).collect();
    }
    message
}

fn tools(settings: &ModelSettings, request: &Request) -> Value {
    let tool = |name: &str, description: &str, parameters: &Value| {
        let parameters = settings.dialect.schema.reduce(parameters);
        json!({"type": "function", "function":
            {"name": name, "description": description, "parameters": parameters}})
    };
    request.tools.iter().map(|spec| tool(&spec.name, &spec.description, &spec.parameters)).collect()
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
    fn a_request_is_written_as_the_wire_wants_it() {
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
                "model": "m", "stream": true, "keep_alive": "5m",
                "options": {"num_predict": 9, "num_ctx": 8192, "seed": 1},
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": wire["messages"][1]["content"]},
                    {"role": "assistant", "content": "Yes.", "thinking": "hm", "tool_calls": [
                        {"function": {"name": "bash", "arguments": {"command": "wc"}}}]},
                    {"role": "tool", "tool_name": "bash", "content": "7"},
                    {"role": "user", "content": "/a.png", "images": ["cG5n"]},
                ],
                "tools": [{"type": "function", "function":
                    {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object"}}}],
            })
        );
    }

    #[test]
    fn a_model_is_told_to_think_as_it_can_be_told() {
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
