//! Our words in the wire's form. Borrows the messages: a long thread is written, never copied whole. Who says what
//! is told by [`Human::told`](pudu_base::Human::told).

use super::settings::OpenAiSettings;
use base64::prelude::{BASE64_STANDARD, Engine};
use pudu_base::{Assistant, Message, ModelImage, Request, ToolCall, ToolResult, ToolSpec};
use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// Writes a request's body.
pub(super) fn body(settings: &OpenAiSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
    let extra = &settings.extra;
    let ours = Body {
        model: &settings.model,
        messages: WireMessages(request, settings.thoughts),
        tools: &request.tools,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    };
    serde_json::to_vec(&With { ours, extra })
}

/// Our keys, and the operator's over them.
struct With<'a> {
    ours: Body<'a>,
    extra: &'a Map<String, Value>,
}

impl Serialize for With<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        let ours = &self.ours;
        let free = |key: &str| !self.extra.contains_key(key);
        if free("model") {
            map.serialize_entry("model", ours.model)?;
        }
        map.serialize_entry("messages", &ours.messages)?;
        if !ours.tools.is_empty() {
            map.serialize_entry("tools", &WireTools(ours.tools))?;
        }
        map.serialize_entry("stream", &ours.stream)?;
        if free("stream_options") {
            map.serialize_entry("stream_options", &ours.stream_options)?;
        }
        let guarded = ["messages", "tools", "stream"];
        for (key, value) in self.extra.iter().filter(|(key, _)| !guarded.contains(&key.as_str())) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

struct Body<'a> {
    model: &'a str,
    messages: WireMessages<'a>,
    tools: &'a [Arc<ToolSpec>],
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct WireMessages<'a>(&'a Request, Option<&'static str>);

impl Serialize for WireMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        if !self.0.system.is_empty() {
            seq.serialize_element(&WireMessage::System { content: &self.0.system })?;
        }
        for message in &self.0.messages {
            seq.serialize_element(&WireMessage::new(message, self.1))?;
        }
        if !self.0.images.is_empty() {
            // A tool's result is text on this wire, so what a tool shows comes from the user.
            seq.serialize_element(&WireMessage::Pictures { role: "user", content: shown(&self.0.images) })?;
        }
        seq.end()
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Cow<'a, str>,
    },
    Assistant {
        /// Null where there are only calls; some servers refuse an empty string there.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
        /// The model's thoughts, under the provider's name for them.
        #[serde(flatten)]
        thoughts: Option<BTreeMap<&'static str, &'a str>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
    #[serde(untagged)]
    Pictures {
        role: &'static str,
        content: Vec<WirePart<'a>>,
    },
}

/// A part of a message that has images.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

/// Writes images, each behind its name.
fn shown(pictures: &[ModelImage]) -> Vec<WirePart<'_>> {
    let parts = |ModelImage { image, bytes }: &'_ ModelImage| {
        let url = format!("data:{};base64,{}", image.mime, BASE64_STANDARD.encode(bytes));
        WirePart::ImageUrl { image_url: ImageUrl { url } }
    };
    pictures
        .iter()
        .flat_map(|picture| [WirePart::Text { text: &picture.image.path }, parts(picture)])
        .collect()
}

impl<'a> WireMessage<'a> {
    fn new(message: &'a Message, thoughts: Option<&'static str>) -> Self {
        match message {
            Message::Human(human) => Self::User { content: human.told() },
            Message::Reminder(reminder) => Self::User { content: reminder.told().into() },
            Message::Assistant(Assistant { text, reasoning, calls, .. }) => Self::Assistant {
                content: (!text.is_empty() || calls.is_empty()).then_some(text),
                tool_calls: calls.iter().map(WireCall::from).collect(),
                thoughts: thoughts.zip(reasoning.as_deref()).map(|pair| BTreeMap::from([pair])),
            },
            Message::Tool(ToolResult { call, text, .. }) => {
                Self::Tool { tool_call_id: call.as_str(), content: text }
            }
        }
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: String,
}

impl<'a> From<&'a ToolCall> for WireCall<'a> {
    fn from(call: &'a ToolCall) -> Self {
        Self {
            id: call.id.as_str(),
            r#type: "function",
            function: WireFunction { name: &call.name, arguments: call.args.to_string() },
        }
    }
}

struct WireTools<'a>(&'a [Arc<ToolSpec>]);

impl Serialize for WireTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a Value,
        }
        #[derive(Serialize)]
        struct WireTool<'a> {
            r#type: &'static str,
            function: Function<'a>,
        }
        serializer.collect_seq(self.0.iter().map(|spec| WireTool {
            r#type: "function",
            function: Function {
                name: &spec.name,
                description: &spec.description,
                parameters: &spec.parameters,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{Finish, Human, Image, SharedFile};
    use serde_json::json;
    use std::time::Duration;

    fn request() -> Request {
        let human = Human {
            sender: Some("Ada".into()),
            files: vec![SharedFile {
                name: "a.csv".into(),
                path: "/mnt/user-data/uploads/a.csv".into(),
                size: 7,
                reading: None,
            }],
            ..Human::new("h", "count these")
        };
        let call =
            ToolCall { id: "c1".into(), name: "bash".into(), args: json!({"command": "wc"}), garbled: None };
        let assistant = Assistant {
            id: "a".into(),
            text: String::new(),
            reasoning: Some("hm".into()),
            provider_parts: None,
            calls: vec![call],
            finish: Finish::Complete,
            model: None,
            usage: None,
        };
        let result = ToolResult {
            id: "t".into(),
            call: "c1".into(),
            tool: "bash".into(),
            text: "7".into(),
            error: false,
            question: None,
            image: None,
            decision: None,
            decisions: Vec::new(),
        };
        let spec = ToolSpec {
            name: "bash".into(),
            description: "Runs a command.".into(),
            parameters: json!({"type": "object"}),
            idempotent: false,
        };
        Request {
            system: "Be brief.".into(),
            messages: vec![
                Arc::new(Message::Human(human)),
                Arc::new(Message::Assistant(assistant)),
                Arc::new(Message::Tool(result)),
            ],
            tools: Arc::new([Arc::new(spec)]),
            images: vec![ModelImage {
                image: Image { path: "/mnt/user-data/uploads/a.png".into(), mime: "image/png".into() },
                bytes: Arc::new(*b"png"),
            }],
            thinking: pudu_base::Thinking::On,
        }
    }

    #[test]
    fn a_request_is_written_as_the_wire_wants_it() {
        let extra = json!({"temperature": 0.5, "stream": false, "model": "pinned"});
        let settings = OpenAiSettings {
            name: "gpt".into(),
            model: "gpt".into(),
            base_url: "http://localhost".into(),
            api_key: None,
            headers: vec![],
            extra: extra.as_object().unwrap().clone(),
            thoughts: Some("reasoning_content"),
            window: 1_000,
            sees: true,
            gap: Duration::from_secs(1),
            total: Duration::from_secs(1),
        };
        let body = body(&settings, &request()).unwrap();
        let wire: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            wire,
            json!({
                "model": "pinned",
                "temperature": 0.5,
                "stream": true,
                "stream_options": {"include_usage": true},
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "{\"from\":{\"name\":\"Ada\"}}\n[file: a.csv (7 bytes) at /mnt/user-data/uploads/a.csv]\n\n> count these"},
                    {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"wc\"}"}}
                    ]},
                    {"role": "tool", "tool_call_id": "c1", "content": "7"},
                    {"role": "user", "content": [
                        {"type": "text", "text": "/mnt/user-data/uploads/a.png"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}}
                    ]}
                ],
                "tools": [{"type": "function", "function":
                    {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object"}}}]
            })
        );
    }
}
