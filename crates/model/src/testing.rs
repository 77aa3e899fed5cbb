//! Helpers for the tests of all wires: a reply is decoded as a whole, byte by byte, and split at every byte.

use crate::{ModelSettings, frames::ReplyDecoder};
use pudu_base::{
    Assistant, Delta, Finish, Human, Image, Message, ModelError, ModelImage, ProviderParts, Request,
    Sampling, ToolCall, ToolResult, ToolSpec, Usage,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A decoded reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) parts: Option<ProviderParts>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<Finish>,
    pub(crate) images: Vec<Vec<u8>>,
}

impl Reply {
    pub(crate) fn with_text(text: &str, finish: Finish) -> Self {
        Self { text: text.to_owned(), finish: Some(finish), ..Self::default() }
    }

    pub(crate) fn with_calls(self, calls: Vec<ToolCall>) -> Self {
        Self { calls, ..self }
    }

    pub(crate) fn with_usage(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    fn from_deltas(deltas: Vec<Delta>) -> Self {
        let mut reply = Self::default();
        for delta in deltas {
            assert_eq!(reply.finish, None, "a delta after the finish: {delta:?}");
            match delta {
                Delta::Text(text) => reply.text.push_str(&text),
                Delta::Retract => reply.text.clear(),
                Delta::Reasoning(text) => reply.reasoning.push_str(&text),
                Delta::ProviderParts(parts) => {
                    assert_eq!(reply.parts.replace(parts), None, "parts are emitted once")
                }
                Delta::Image(bytes) => reply.images.push(bytes),
                Delta::Call(call) => reply.calls.push(call),
                Delta::Usage(usage) => {
                    assert_eq!(reply.usage.replace(usage), None, "the usage is emitted once")
                }
                Delta::Finish(finish) => reply.finish = Some(finish),
                Delta::Again { .. } | Delta::Model(_) => panic!("a wire calls one model once"),
            }
        }
        reply
    }
}

pub(crate) fn call(id: &str, name: &str, args: Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), args, garbled: None }
}

pub(crate) fn garbled_call(id: &str, name: &str, text: &str) -> ToolCall {
    let args = Value::Object(serde_json::Map::new());
    ToolCall { id: id.into(), name: name.into(), args, garbled: Some(text.into()) }
}

pub(crate) fn reply(text: &str, calls: Vec<ToolCall>) -> Assistant {
    Assistant {
        id: "a".into(),
        text: text.to_owned(),
        reasoning: None,
        provider_parts: None,
        calls,
        finish: Finish::Complete,
        model: None,
        usage: None,
        failure: None,
    }
}

pub(crate) fn result(call: &str, text: &str) -> ToolResult {
    ToolResult {
        id: "t".into(),
        call: call.into(),
        tool: "bash".into(),
        text: text.to_owned(),
        error: false,
        question: None,
        images: Vec::new(),
        decision: None,
        decisions: Vec::new(),
        task: None,
    }
}

/// Feeds bytes to a decoder and returns the completed deltas.
pub(crate) fn push(decoder: &mut ReplyDecoder, bytes: &[u8]) -> Result<Vec<Delta>, ModelError> {
    let mut deltas = Vec::new();
    decoder.push(bytes, &mut deltas).map(|()| deltas)
}

fn in_chunks<'a>(
    settings: &ModelSettings,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> Result<Reply, ModelError> {
    let mut decoder = ReplyDecoder::for_model(settings);
    let mut deltas = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut deltas)?;
    }
    decoder.end(&mut deltas)?;
    Ok(Reply::from_deltas(deltas))
}

/// Decodes a reply as a whole, byte by byte, in two chunks, and truncated at every byte. Returns the result of the
/// whole one. A truncated reply gives the same result or an error; only the usage, which comes last, may be missing.
pub(crate) fn read(settings: &ModelSettings, bytes: &[u8]) -> Result<Reply, ModelError> {
    let at_once = read_open(settings, bytes);
    for at in 0..bytes.len() {
        let (head, _) = bytes.split_at(at);
        match (in_chunks(settings, std::iter::once(head)), &at_once) {
            (Err(_), _) => {}
            (Ok(cut), Ok(at_once)) => {
                let usage = cut.usage.and(at_once.usage);
                assert_eq!(
                    cut,
                    Reply { usage, ..at_once.clone() },
                    "cut at {at}: {}",
                    String::from_utf8_lossy(head)
                );
            }
            (Ok(cut), Err(error)) => {
                panic!("truncated at {at} it is a reply, {cut:?}, but complete it is {error}")
            }
        }
    }
    at_once
}

/// Decodes a reply as a whole, byte by byte, and in two chunks, but never truncated, for replies that continue after an
/// apparent end.
pub(crate) fn read_open(settings: &ModelSettings, bytes: &[u8]) -> Result<Reply, ModelError> {
    let at_once = in_chunks(settings, std::iter::once(bytes));
    assert_eq!(
        in_chunks(settings, bytes.chunks(1)),
        at_once,
        "by single bytes: {}",
        String::from_utf8_lossy(bytes)
    );
    for at in 0..bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(in_chunks(settings, [head, tail].into_iter()), at_once, "in two pieces, at {at}");
    }
    at_once
}

/// Returns a request with a message of each kind. Its assistant message has these provider parts.
pub(crate) fn request(provider_parts: Option<ProviderParts>) -> Request {
    let reply = Assistant {
        id: "a".into(),
        text: "Yes.".into(),
        reasoning: Some("hm".into()),
        provider_parts,
        calls: vec![call("c1", "bash", json!({"command": "wc"}))],
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
    let image = Image { path: "/a.png".into(), mime: "image/png".into() };
    let messages =
        [Message::Human(Human::new("h", "count")), Message::Assistant(reply), Message::Tool(result)];
    Request {
        system: "Be brief.".into(),
        messages: messages.map(Arc::new).into(),
        tools: Arc::new([Arc::new(spec)]),
        sampling: Sampling::default(),
        most: None,
        images: vec![ModelImage { image, bytes: Arc::new(*b"png") }],
        thinking: pudu_base::Thinking::On,
        caller: pudu_base::ModelCaller::Lead,
    }
}
