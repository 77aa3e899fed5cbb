//! Ollama's chat: a JSON object per line, with complete calls.

use super::{Piece, Said, Writer};
use serde_json::{Value, json};
use std::collections::VecDeque;

pub(crate) struct OllamaWriter {
    said: Said,
    failed: bool,
}

impl OllamaWriter {
    pub(crate) fn new(said: Said) -> Self {
        Self { said, failed: false }
    }

    fn thinks(&self) -> bool {
        let think = &self.said.ask.body["think"];
        (think == true || think.is_string()) && !self.said.answer.reasoning.is_empty()
    }

    fn line(&self, message: &Value) -> Value {
        json!({"model": self.said.ask.model(), "created_at": self.now(), "message": message, "done": false})
    }

    fn now(&self) -> String {
        let seconds = self.said.created.rem_euclid(86_400);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("2026-11-23T{hour:02}:{minute:02}:{second:02}.948798825Z")
    }

    fn call(&self, index: usize) -> Result<Value, String> {
        let call = self.said.call(index);
        let id = self.said.call_id(index, "call_", 8).to_lowercase();
        match serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments) {
            Ok(arguments) => {
                Ok(json!({"id": id, "function": {"index": index, "name": call.name, "arguments": arguments}}))
            }
            Err(_) => Err(unreadable(&call.arguments)),
        }
    }

    /// Adds the counts of the last line.
    fn finish(&self, mut line: Value) -> Value {
        let reason = match self.said.answer.reason() {
            "tool_calls" => "stop",
            other => other,
        };
        line["done"] = true.into();
        line["done_reason"] = reason.into();
        line["total_duration"] = 499_049_129.into();
        line["load_duration"] = 12_049_129.into();
        line["prompt_eval_count"] = self.said.usage.input.into();
        line["prompt_eval_duration"] = 130_079_000.into();
        line["eval_count"] = self.said.usage.output.into();
        line["eval_duration"] = 356_902_000.into();
        line
    }
}

impl Writer for OllamaWriter {
    fn pieces(&self) -> VecDeque<Piece> {
        self.said.pieces(self.thinks(), false)
    }

    fn piece(&mut self, piece: &Piece) -> String {
        if self.failed {
            return String::new();
        }
        let message = match piece {
            Piece::Opening | Piece::Arguments(..) => return String::new(),
            Piece::Thought(text) => json!({"role": "assistant", "content": "", "thinking": text}),
            Piece::Text(text) => json!({"role": "assistant", "content": text}),
            Piece::Call(index) => match self.call(*index) {
                Ok(call) => json!({"role": "assistant", "content": "", "tool_calls": [call]}),
                Err(message) => {
                    self.failed = true;
                    return self.error(&message);
                }
            },
        };
        format!("{}\n", self.line(&message))
    }

    fn tail(&mut self) -> String {
        if self.failed {
            return String::new();
        }
        format!("{}\n", self.finish(self.line(&json!({"role": "assistant", "content": ""}))))
    }

    fn error(&mut self, message: &str) -> String {
        format!("{}\n", json!({"error": message}))
    }

    fn garbage(&self) -> &'static str {
        "{\"model\":\"sim-1\",\"mess\n"
    }

    /// A call that the server cannot read is an error.
    fn whole(&mut self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.said.text()});
        if self.thinks() {
            message["thinking"] = self.said.thoughts().into();
        }
        let calls: Result<Vec<_>, _> =
            (0..self.said.answer.tools.len()).map(|index| self.call(index)).collect();
        match calls {
            Ok(calls) if !calls.is_empty() => message["tool_calls"] = calls.into(),
            Ok(_) => {}
            Err(message) => return json!({"error": message}),
        }
        self.finish(self.line(&message))
    }
}

fn unreadable(arguments: &str) -> String {
    format!("error parsing tool call: raw='{arguments}', err=unexpected end of JSON input")
}
