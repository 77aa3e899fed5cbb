//! The provider's wire shapes: chunks of a stream, whole answers, errors, the list of models.

use super::{Answer, Ask, ToolCall, Usage};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// How many pieces the arguments of a tool call come in.
const PIECES: usize = 3;

/// Writes the answers to one request.
pub(crate) struct Writer {
    id: String,
    created: i64,
    model: String,
    include_usage: bool,
}

impl Writer {
    pub(crate) fn new(n: u64, created: i64, ask: &Ask) -> Self {
        Self {
            id: format!("chatcmpl-sim{n:08}"),
            created,
            model: ask.model().to_owned(),
            include_usage: ask.wants_usage(),
        }
    }

    /// What a stream says, piece by piece: the opening with the role, then the content. Written out only
    /// when it is due, so that many streams that start at once do not wait for one another.
    pub(crate) fn deltas(&self, answer: &Answer) -> VecDeque<Value> {
        let opening = json!({"role": "assistant", "content": ""});
        let reasoning = answer.reasoning.iter().map(|text| json!({"reasoning_content": text}));
        let content = answer.chunks.iter().map(|text| json!({"content": text}));
        let mut deltas: VecDeque<_> = std::iter::once(opening).chain(reasoning).chain(content).collect();
        for (index, call) in answer.tools.iter().enumerate() {
            deltas.extend(self.tool_deltas(index, call));
        }
        deltas
    }

    /// A piece as it goes over the wire.
    pub(crate) fn write(&self, delta: &Value) -> Bytes {
        self.delta(delta, None)
    }

    /// What ends a stream: the reason, the usage if it was asked for, the last word.
    pub(crate) fn tail(&self, answer: &Answer, usage: Usage) -> Bytes {
        let mut tail = self.delta(&json!({}), Some(answer.reason())).to_vec();
        if self.include_usage {
            let mut chunk = self.chunk(&json!([]));
            chunk["usage"] = counted(usage);
            tail.extend(event(&chunk));
        }
        tail.extend(b"data: [DONE]\n\n");
        tail.into()
    }

    /// The id and the name first, then the arguments in pieces, as providers send them.
    fn tool_deltas(&self, index: usize, call: &ToolCall) -> Vec<Value> {
        let opening = json!({
            "index": index, "id": self.call_id(index, call), "type": "function",
            "function": {"name": call.name, "arguments": ""},
        });
        let pieces = pieces(&call.arguments).into_iter();
        let rest = pieces.map(|piece| json!({"index": index, "function": {"arguments": piece}}));
        std::iter::once(opening).chain(rest).map(|delta| json!({"tool_calls": [delta]})).collect()
    }

    fn call_id(&self, index: usize, call: &ToolCall) -> String {
        match call.id.as_str() {
            "" => format!("call_{}_{index}", self.id.trim_start_matches("chatcmpl-")),
            id => id.to_owned(),
        }
    }

    fn delta(&self, delta: &Value, finish: Option<&str>) -> Bytes {
        event(&self.chunk(&json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}])))
    }

    fn chunk(&self, choices: &Value) -> Value {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "system_fingerprint": "fp_sim", "choices": choices,
        });
        // With usage asked for, every other chunk says that it has none.
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    /// The answer in one piece.
    pub(crate) fn whole(&self, answer: &Answer, usage: Usage) -> Value {
        let mut message = json!({"role": "assistant", "content": answer.chunks.concat(), "refusal": null});
        if !answer.reasoning.is_empty() {
            message["reasoning_content"] = answer.reasoning.concat().into();
        }
        if !answer.tools.is_empty() {
            let calls = answer.tools.iter().enumerate().map(|(index, call)| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": self.call_id(index, call), "type": "function", "function": function})
            });
            message["tool_calls"] = calls.collect();
        }
        json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "system_fingerprint": "fp_sim", "usage": counted(usage),
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": answer.reason()}],
        })
    }
}

fn event(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

fn counted(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    })
}

/// Cut anywhere between characters: a piece alone is rarely JSON.
fn pieces(arguments: &str) -> Vec<String> {
    let chars: Vec<char> = arguments.chars().collect();
    let size = chars.len().div_ceil(PIECES).max(1);
    chars.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// The tokens that an answer is said to have used, a word being one.
pub(crate) fn usage(ask: &Ask, answer: &Answer) -> Usage {
    let words = |text: &str| u64::try_from(text.split_whitespace().count()).unwrap_or(u64::MAX);
    let input = ask.messages().iter().map(|message| words(&message["content"].to_string())).sum();
    let output =
        words(&answer.chunks.concat()) + answer.tools.iter().map(|call| words(&call.arguments)).sum::<u64>();
    answer.usage.unwrap_or(Usage { input, output })
}

/// An error's body.
pub(crate) fn error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        429 => ("rate_limit_error", json!("rate_limit_exceeded")),
        400..500 => ("invalid_request_error", Value::Null),
        _ => ("server_error", Value::Null),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// An error in the middle of a stream.
pub(crate) fn error_event(message: &str) -> Bytes {
    event(&error(500, message))
}

/// The list of models.
pub(crate) fn models() -> Value {
    let model =
        |id: &str| json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "pudu-sim"});
    json!({"object": "list", "data": [model("sim-1"), model("sim-2")]})
}
