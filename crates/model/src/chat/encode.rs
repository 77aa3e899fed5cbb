//! Encodes requests for the wire. Messages are borrowed: a long thread is serialized without being copied.
//! [`Human::to_model_text`](pudu_base::Human::to_model_text) marks the authors.

use super::decode::DETAILS;
use crate::{
    Dialect, ModelSettings, limit,
    parts::{CallParts, own_parts, own_thoughts},
    wire,
};
use base64::prelude::{BASE64_STANDARD, Engine};
use pudu_base::{Assistant, Message, ModelImage, Request, ToolCall, ToolResult, ToolSpec};
use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// Serializes a request's body. The operator's keys override ours.
pub(super) fn body(settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
    let writing =
        MessageWriting { dialect: &settings.dialect, model: &settings.name, origin: settings.origin() };
    let mut extra = options(settings, request);
    let model = extra.remove("model").unwrap_or_else(|| json!(settings.model));
    let tools =
        (!request.tools.is_empty()).then(|| WireTools { specs: &request.tools, dialect: &settings.dialect });
    for ours in ["messages", "tools", "stream"] {
        extra.remove(ours);
    }
    let messages = WireMessages { request, writing: &writing };
    wire::written(&Body { model, messages, tools, stream: true, extra })
}

/// Returns the keys other than messages and tools.
fn options(settings: &ModelSettings, request: &Request) -> Map<String, Value> {
    let (dialect, thinking) = (&settings.dialect, &settings.thinking);
    let mut options = Map::new();
    if let Some(tokens) = settings.max_tokens {
        options.insert(dialect.limit_field.to_owned(), tokens.into());
    }
    if let Some(temperature) = settings.temperature {
        options.insert("temperature".to_owned(), temperature.into());
    }
    if dialect.asks_usage {
        options.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    options.extend(settings.body.clone());
    thinking.apply(request.thinking, &mut options);
    if let Some(effort) = thinking.effort(request.thinking) {
        options.insert("reasoning_effort".to_owned(), effort.into());
    }
    limit::bound(&mut options, &limit_keys(dialect), request);
    options
}

/// Returns the fields that limit a reply, with the provider's field first.
fn limit_keys(dialect: &Dialect) -> [&'static str; 3] {
    [dialect.limit_field, "max_tokens", "max_completion_tokens"]
}

/// Returns the maximum number of tokens of a reply.
pub(super) fn limit(settings: &ModelSettings, request: &Request) -> Option<u64> {
    limit::limit(&options(settings, request), &limit_keys(&settings.dialect))
}

#[derive(Serialize)]
struct Body<'a> {
    model: Value,
    #[serde(flatten)]
    extra: Map<String, Value>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<WireTools<'a>>,
    /// Must be the last field, so that the bytes before it never change.
    messages: WireMessages<'a>,
}

/// How messages are written for this provider.
struct MessageWriting<'a> {
    dialect: &'a Dialect,
    model: &'a str,
    origin: String,
}

struct WireMessages<'a> {
    request: &'a Request,
    writing: &'a MessageWriting<'a>,
}

impl Serialize for WireMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, writing } = self;
        let mut seq = serializer.serialize_seq(None)?;
        if !request.system.is_empty() {
            seq.serialize_element(&WireMessage::System { content: &request.system })?;
        }
        for message in &request.messages {
            seq.serialize_element(&writing.message(message))?;
        }
        if !request.images.is_empty() {
            // Tool results are text on this wire, so images from tools are sent as user messages.
            seq.serialize_element(&WireMessage::Pictures {
                role: "user",
                content: encode_images(&request.images),
            })?;
        }
        seq.end()
    }
}

impl MessageWriting<'_> {
    fn message<'a>(&self, message: &'a Message) -> WireMessage<'a> {
        match message {
            Message::Human(human) => WireMessage::User { content: human.to_model_text() },
            Message::Reminder(reminder) => WireMessage::User { content: reminder.to_model_text().into() },
            Message::Assistant(reply) => self.reply(reply),
            Message::Tool(ToolResult { call, text, .. }) => {
                WireMessage::Tool { tool_call_id: self.dialect.call_ids.form(call.as_str()), content: text }
            }
        }
    }

    fn reply<'a>(&self, reply: &'a Assistant) -> WireMessage<'a> {
        let Assistant { text, calls, .. } = reply;
        let own = own_parts(reply, &self.origin);
        let mut extras = CallParts::new(own);
        WireMessage::Assistant {
            content: (!text.is_empty() || calls.is_empty()).then_some(text),
            tool_calls: calls.iter().map(|call| self.call(call, extras.next_of(call))).collect(),
            thoughts: self.thoughts(own_thoughts(reply, self.model), !calls.is_empty()),
            reasoning_details: own.and_then(|parts| parts.get(DETAILS)),
        }
    }

    fn thoughts<'a>(
        &self,
        reasoning: Option<&'a str>,
        calls: bool,
    ) -> Option<BTreeMap<&'static str, &'a str>> {
        let field = self.dialect.thoughts?;
        let needed = (self.dialect.needs_thoughts && calls).then_some("");
        reasoning.or(needed).map(|thoughts| BTreeMap::from([(field, thoughts)]))
    }

    fn call<'a>(&self, call: &'a ToolCall, extra: Option<&'a Value>) -> WireCall<'a> {
        WireCall {
            id: self.dialect.call_ids.form(call.id.as_str()),
            r#type: "function",
            function: WireFunction { name: &call.name, arguments: call.args.to_string() },
            extra_content: extra,
        }
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
        /// Null if there are only calls; some servers refuse an empty string.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
        /// The model's thoughts, in the provider's field.
        #[serde(flatten)]
        thoughts: Option<BTreeMap<&'static str, &'a str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a Value>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
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

/// Encodes images, each preceded by its path.
fn encode_images(pictures: &[ModelImage]) -> Vec<WirePart<'_>> {
    let parts = |ModelImage { image, bytes }: &'_ ModelImage| {
        let url = format!("data:{};base64,{}", image.mime, BASE64_STANDARD.encode(bytes));
        WirePart::ImageUrl { image_url: ImageUrl { url } }
    };
    pictures
        .iter()
        .flat_map(|picture| [WirePart::Text { text: &picture.image.path }, parts(picture)])
        .collect()
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireFunction<'a>,
    /// Data that the provider sent with the call and expects back.
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: String,
}

struct WireTools<'a> {
    specs: &'a [Arc<ToolSpec>],
    dialect: &'a Dialect,
}

impl Serialize for WireTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: Cow<'a, Value>,
        }
        #[derive(Serialize)]
        struct WireTool<'a> {
            r#type: &'static str,
            function: Function<'a>,
        }
        serializer.collect_seq(self.specs.iter().map(|spec| WireTool {
            r#type: "function",
            function: Function {
                name: &spec.name,
                description: &spec.description,
                parameters: self.dialect.schema.reduce(&spec.parameters),
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireKind;
    use pudu_base::{Finish, Human, Image, SharedFile};
    use serde_json::json;

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
            failure: None,
        };
        let result = ToolResult {
            id: "t".into(),
            call: "c1".into(),
            tool: "bash".into(),
            text: "7".into(),
            error: false,
            question: None,
            images: Vec::new(),
            decision: None,
            decisions: Vec::new(),
            task: None,
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
            sampling: pudu_base::Sampling::default(),
            most: None,
            caller: pudu_base::ModelCaller::Lead,
        }
    }

    #[test]
    fn requests_have_the_format_of_the_wire() {
        let extra = json!({"temperature": 0.5, "stream": false, "model": "pinned"});
        let dialect = Dialect { thoughts: Some("reasoning_content"), ..Dialect::PLAIN };
        let settings = ModelSettings {
            body: extra.as_object().unwrap().clone(),
            dialect,
            ..ModelSettings::plain("gpt", WireKind::Chat)
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
