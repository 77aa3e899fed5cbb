//! OpenAI's chat completions: chunks with deltas, and an end marker.

use super::{Piece, Said, Writer, event};
use crate::model::{Usage, errors};
use serde_json::{Value, json};
use std::collections::VecDeque;

pub(crate) struct ChatWriter {
    said: Said,
    id: String,
}

impl ChatWriter {
    pub(crate) fn new(said: Said) -> Self {
        let id = format!("chatcmpl-sim{:08}", said.n);
        Self { said, id }
    }

    fn call_id(&self, index: usize) -> String {
        match self.said.call(index).id.as_str() {
            "" => format!("call_{}_{index}", self.id.trim_start_matches("chatcmpl-")),
            id => id.to_owned(),
        }
    }

    fn delta(&self, delta: &Value, finish: Option<&str>) -> String {
        event(&self.chunk(&json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}])))
    }

    fn chunk(&self, choices: &Value) -> Value {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.said.created,
            "model": self.said.ask.model(), "system_fingerprint": "fp_sim", "choices": choices,
        });
        // If usage is requested, every other chunk has a null usage.
        if self.said.ask.wants_usage() {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

impl Writer for ChatWriter {
    fn pieces(&self) -> VecDeque<Piece> {
        self.said.pieces(true, true)
    }

    /// A call is its ID and name first, then the arguments in pieces.
    fn piece(&mut self, piece: &Piece) -> String {
        let delta = match piece {
            Piece::Opening => json!({"role": "assistant", "content": ""}),
            Piece::Thought(text) => json!({"reasoning_content": text}),
            Piece::Text(text) => json!({"content": text}),
            Piece::Call(index) => json!({"tool_calls": [{
                "index": index, "id": self.call_id(*index), "type": "function",
                "function": {"name": self.said.call(*index).name, "arguments": ""},
            }]}),
            Piece::Arguments(index, text) => {
                json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
            }
        };
        self.delta(&delta, None)
    }

    /// The finish reason, the usage if requested, and the end marker.
    fn tail(&mut self) -> String {
        let images = self.said.answer.images.iter();
        let mut tail: String = images
            .map(|url| json!({"content": "", "images": [{"type": "image_url", "image_url": {"url": url}}]}))
            .map(|delta| self.delta(&delta, None))
            .collect();
        tail += &self.delta(&json!({}), Some(self.said.answer.reason()));
        if self.said.ask.wants_usage() {
            let mut chunk = self.chunk(&json!([]));
            chunk["usage"] = counted(self.said.usage);
            tail += &event(&chunk);
        }
        tail + "data: [DONE]\n\n"
    }

    fn error(&mut self, message: &str) -> String {
        event(&errors::openai(500, message, None))
    }

    fn garbage(&self) -> &'static str {
        "data: {\"choices\": [{\"del\n\n"
    }

    fn whole(&mut self) -> Value {
        let answer = &self.said.answer;
        let mut message = json!({"role": "assistant", "content": self.said.text(), "refusal": null});
        if !answer.reasoning.is_empty() {
            message["reasoning_content"] = self.said.thoughts().into();
        }
        if !answer.tools.is_empty() {
            let calls = answer.tools.iter().enumerate().map(|(index, call)| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": self.call_id(index), "type": "function", "function": function})
            });
            message["tool_calls"] = calls.collect();
        }
        json!({
            "id": self.id, "object": "chat.completion", "created": self.said.created,
            "model": self.said.ask.model(), "system_fingerprint": "fp_sim", "usage": counted(self.said.usage),
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": answer.reason()}],
        })
    }
}

fn counted(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    })
}

/// Returns the list of models.
pub(crate) fn models() -> Value {
    let model =
        |id: &str| json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "pudu-sim"});
    json!({"object": "list", "data": [model("sim-1"), model("sim-2")]})
}
