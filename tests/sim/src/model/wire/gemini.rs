//! Gemini's content: complete parts in events with a running token count, and signed thoughts.

use super::{Piece, Said, Writer, words};
use crate::model::{errors, seal};
use serde_json::{Value, json};
use std::collections::VecDeque;

pub(crate) struct GeminiWriter {
    said: Said,
    thoughts: u64,
    written: u64,
}

impl GeminiWriter {
    pub(crate) fn new(said: Said) -> Self {
        Self { said, thoughts: 0, written: 0 }
    }

    fn shows_thoughts(&self) -> bool {
        // Google's servers accept either spelling; its Python client sends the second.
        let config = &self.said.ask.body["generationConfig"]["thinkingConfig"];
        config["includeThoughts"] == true || config["include_thoughts"] == true
    }

    /// Returns whether the model wrote a call that its own server cannot read.
    fn malformed(&self) -> bool {
        self.said.answer.tools.iter().any(|call| arguments(&call.arguments).is_none())
    }

    fn call(&self, index: usize) -> Value {
        let call = self.said.call(index);
        let args = arguments(&call.arguments).unwrap_or_default();
        let mut part = json!({"functionCall": {"name": call.name, "args": args}});
        if !call.id.is_empty() {
            part["functionCall"]["id"] = call.id.as_str().into();
        }
        // Of parallel calls, the first is signed.
        if index == 0 {
            part["thoughtSignature"] = seal::seal("thought", "").into();
        }
        part
    }

    fn reason(&self) -> String {
        match self.said.answer.reason() {
            _ if self.malformed() => "MALFORMED_FUNCTION_CALL".to_owned(),
            "stop" | "tool_calls" => "STOP".to_owned(),
            "length" => "MAX_TOKENS".to_owned(),
            "content_filter" => "SAFETY".to_owned(),
            other => other.to_uppercase(),
        }
    }

    fn response(&self, candidate: &Value, thoughts: u64, written: u64) -> Value {
        let input = self.said.usage.input;
        let mut usage = json!({
            "promptTokenCount": input, "totalTokenCount": input + thoughts + written,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": input}],
        });
        // Proto JSON omits zeros.
        if written > 0 {
            usage["candidatesTokenCount"] = written.into();
        }
        if thoughts > 0 {
            usage["thoughtsTokenCount"] = thoughts.into();
        }
        let id = seal::letters(&self.said.seed("gemini"), 23);
        json!({
            "candidates": [candidate], "usageMetadata": usage, "modelVersion": self.said.ask.model(), "responseId": id,
        })
    }

    fn parts(&self, parts: &Value) -> String {
        let candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        event(&self.response(&candidate, self.thoughts, self.written))
    }

    /// Returns the output tokens without thoughts.
    fn all_written(&self) -> u64 {
        self.said.usage.output - self.said.thought_tokens()
    }

    fn last(&self, parts: &Value) -> Value {
        let mut candidate =
            json!({"content": {"parts": parts, "role": "model"}, "finishReason": self.reason(), "index": 0});
        if self.malformed() {
            candidate["content"] = json!({"role": "model"});
            let told: String = self.said.answer.tools.iter().map(|call| call.arguments.as_str()).collect();
            candidate["finishMessage"] = format!("Malformed function call: {told}").into();
        }
        self.response(&candidate, self.said.thought_tokens(), self.all_written())
    }
}

impl Writer for GeminiWriter {
    fn pieces(&self) -> VecDeque<Piece> {
        let mut pieces = self.said.pieces(self.shows_thoughts(), false);
        if self.malformed() {
            pieces.retain(|piece| !matches!(piece, Piece::Call(_)));
        }
        pieces
    }

    fn piece(&mut self, piece: &Piece) -> String {
        match piece {
            Piece::Thought(text) => {
                self.thoughts = (self.thoughts + words(text)).min(self.said.thought_tokens());
                self.parts(&json!([{"text": text, "thought": true}]))
            }
            Piece::Text(text) => {
                self.thoughts = self.said.thought_tokens();
                self.written = (self.written + words(text)).min(self.all_written());
                self.parts(&json!([{"text": text}]))
            }
            Piece::Call(index) => self.parts(&json!([self.call(*index)])),
            Piece::Opening | Piece::Arguments(..) => String::new(),
        }
    }

    /// The end is an empty text, signed if the model thought and called no tool.
    fn tail(&mut self) -> String {
        let mut part = json!({"text": ""});
        if !self.said.answer.reasoning.is_empty() && self.said.answer.tools.is_empty() {
            part["thoughtSignature"] = seal::seal("thought", "").into();
        }
        event(&self.last(&json!([part])))
    }

    fn error(&mut self, message: &str) -> String {
        event(&errors::gemini(503, message))
    }

    fn garbage(&self) -> &'static str {
        "data: {\"candidates\": [{\"cont\r\n\r\n"
    }

    fn whole(&mut self) -> Value {
        let mut parts = Vec::new();
        if self.shows_thoughts() && !self.said.answer.reasoning.is_empty() {
            parts.push(json!({"text": self.said.thoughts(), "thought": true}));
        }
        if !self.said.answer.chunks.is_empty() {
            parts.push(json!({"text": self.said.text()}));
        }
        if !self.malformed() {
            parts.extend((0..self.said.answer.tools.len()).map(|index| self.call(index)));
        }
        self.last(&parts.into())
    }
}

/// Arguments are an object on this wire; anything else cannot be sent.
fn arguments(text: &str) -> Option<serde_json::Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// Google's servers end lines with a carriage return.
fn event(value: &Value) -> String {
    format!("data: {value}\r\n\r\n")
}
