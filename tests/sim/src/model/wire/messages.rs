//! Anthropic's messages: consecutive blocks with start, deltas and stop, and signed thinking.

use super::{Piece, Said, Writer, event};
use crate::model::{errors, seal};
use serde_json::{Value, json};
use std::collections::VecDeque;

pub(crate) struct MessagesWriter {
    said: Said,
    /// Kind of the open block, and the number of opened blocks.
    open: Option<&'static str>,
    blocks: usize,
    thought: bool,
    pinged: bool,
}

impl MessagesWriter {
    pub(crate) fn new(said: Said) -> Self {
        Self { said, open: None, blocks: 0, thought: false, pinged: false }
    }

    /// Returns whether thinking was requested.
    fn thinks(&self) -> bool {
        let kind = &self.said.ask.body["thinking"]["type"];
        (kind == "enabled" || kind == "adaptive") && !self.said.answer.reasoning.is_empty()
    }

    /// Returns the visible thoughts: they may be omitted, except for their signature.
    fn shown_thoughts(&self) -> String {
        if self.said.ask.body["thinking"]["display"] == "omitted" {
            String::new()
        } else {
            self.said.thoughts()
        }
    }

    fn start(&self) -> String {
        event(&json!({"type": "message_start", "message": self.message(None, &json!([]), 1)}))
    }

    fn message(&self, reason: Option<&str>, content: &Value, output: u64) -> Value {
        json!({
            "model": self.said.ask.model(), "id": format!("msg_01{}", seal::letters(&self.said.seed("msg"), 22)),
            "type": "message", "role": "assistant", "content": content, "stop_reason": reason,
            "stop_sequence": null, "usage": {
                "input_tokens": self.said.usage.input, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "output_tokens": output, "service_tier": "standard",
            },
        })
    }

    /// Opens a block unless one of its kind is open; each call is a new block.
    fn opened(&mut self, kind: &'static str, block: &Value) -> String {
        if self.open == Some(kind) && kind != "tool_use" {
            return String::new();
        }
        let closed = self.closed();
        self.open = Some(kind);
        self.blocks += 1;
        let start = json!({"type": "content_block_start", "index": self.blocks - 1, "content_block": block});
        let ping = if self.pinged { String::new() } else { event(&json!({"type": "ping"})) };
        self.pinged = true;
        closed + &event(&start) + &ping
    }

    fn closed(&mut self) -> String {
        let Some(kind) = self.open.take() else { return String::new() };
        let mut text = String::new();
        if kind == "thinking" {
            self.open = Some(kind);
            let signature = seal::seal("thinking", &self.shown_thoughts());
            text = self.delta(&json!({"type": "signature_delta", "signature": signature}));
            self.open = None;
        }
        text + &event(&json!({"type": "content_block_stop", "index": self.blocks - 1}))
    }

    fn delta(&self, delta: &Value) -> String {
        event(&json!({"type": "content_block_delta", "index": self.blocks - 1, "delta": delta}))
    }

    /// Returns the block of a thought without visible text.
    fn silent_thought(&mut self) -> String {
        if self.thought || !self.thinks() {
            return String::new();
        }
        self.thought = true;
        self.opened("thinking", &json!({"type": "thinking", "thinking": "", "signature": ""}))
    }

    fn call_id(&self, index: usize) -> String {
        self.said.call_id(index, "toolu_01", 22)
    }

    fn reason(&self) -> &str {
        match self.said.answer.reason() {
            "stop" => "end_turn",
            "tool_calls" => "tool_use",
            "length" => "max_tokens",
            "content_filter" => "refusal",
            other => other,
        }
    }
}

impl Writer for MessagesWriter {
    fn pieces(&self) -> VecDeque<Piece> {
        self.said.pieces(self.thinks() && !self.shown_thoughts().is_empty(), true)
    }

    fn piece(&mut self, piece: &Piece) -> String {
        match piece {
            Piece::Opening => self.start(),
            Piece::Thought(text) => {
                self.thought = true;
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.opened("thinking", &block)
                    + &self.delta(&json!({"type": "thinking_delta", "thinking": text}))
            }
            Piece::Text(text) => {
                self.silent_thought()
                    + &self.opened("text", &json!({"type": "text", "text": ""}))
                    + &self.delta(&json!({"type": "text_delta", "text": text}))
            }
            Piece::Call(index) => {
                let name = &self.said.call(*index).name;
                let block =
                    json!({"type": "tool_use", "id": self.call_id(*index), "name": name, "input": {}});
                self.silent_thought()
                    + &self.opened("tool_use", &block)
                    + &self.delta(&json!({"type": "input_json_delta", "partial_json": ""}))
            }
            Piece::Arguments(_, text) => {
                self.delta(&json!({"type": "input_json_delta", "partial_json": text}))
            }
        }
    }

    fn tail(&mut self) -> String {
        let closed = self.silent_thought() + &self.closed();
        let delta = json!({
            "type": "message_delta", "delta": {"stop_reason": self.reason(), "stop_sequence": null},
            "usage": {
                "input_tokens": self.said.usage.input, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "output_tokens": self.said.usage.output,
            },
        });
        closed + &event(&delta) + &event(&json!({"type": "message_stop"}))
    }

    fn error(&mut self, message: &str) -> String {
        let status = if message == "Overloaded" { 529 } else { 500 };
        event(&errors::anthropic(status, message, self.said.n))
    }

    fn garbage(&self) -> &'static str {
        "event: content_block_delta\ndata: {\"type\":\"content_block_de\n\n"
    }

    fn whole(&mut self) -> Value {
        let mut content = Vec::new();
        if self.thinks() {
            let shown = self.shown_thoughts();
            let signature = seal::seal("thinking", &shown);
            content.push(json!({"type": "thinking", "thinking": shown, "signature": signature}));
        }
        if !self.said.answer.chunks.is_empty() {
            content.push(json!({"type": "text", "text": self.said.text()}));
        }
        for (index, call) in self.said.answer.tools.iter().enumerate() {
            let input = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
            content.push(
                json!({"type": "tool_use", "id": self.call_id(index), "name": call.name, "input": input}),
            );
        }
        self.message(Some(self.reason()), &content.into(), self.said.usage.output)
    }
}
