//! OpenAI's responses: numbered events, items that are added, extended and completed, and encrypted reasoning.

use super::{Piece, Said, Writer, event};
use crate::model::{errors, seal};
use serde_json::{Value, json};
use std::{collections::VecDeque, mem};

pub(crate) struct ResponsesWriter {
    said: Said,
    sequence: u64,
    /// The growing item.
    open: Option<Open>,
    /// The completed items.
    done: Vec<Value>,
    reasoned: bool,
}

/// A growing item with its text so far.
enum Open {
    Reasoning(String),
    Message(String),
    Call(usize, String),
}

impl ResponsesWriter {
    pub(crate) fn new(said: Said) -> Self {
        Self { said, sequence: 0, open: None, done: Vec::new(), reasoned: false }
    }

    fn id(&self, prefix: &str, what: &str) -> String {
        format!("{prefix}{}", seal::hex(&self.said.seed(what), 50))
    }

    fn item_id(&self, prefix: &str) -> String {
        self.id(prefix, &format!("{prefix}{}", self.done.len()))
    }

    fn event(&mut self, name: &str, mut value: Value) -> String {
        value["type"] = name.into();
        value["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        event(&value)
    }

    /// Returns an event of the growing item.
    fn grow(&mut self, name: &str, mut value: Value) -> String {
        value["output_index"] = self.done.len().into();
        self.event(name, value)
    }

    /// Returns the response for events about the whole.
    fn response(&self, status: &str, output: &[Value]) -> Value {
        let body = &self.said.ask.body;
        let usage = self.said.usage;
        let reason = match self.said.answer.reason() {
            "content_filter" => "content_filter",
            _ => "max_output_tokens",
        };
        let ended = status != "in_progress";
        json!({
            "id": self.id("resp_", "resp"), "object": "response", "created_at": self.said.created, "status": status,
            "background": false, "completed_at": (status == "completed").then_some(self.said.created), "error": null,
            "frequency_penalty": 0.0, "presence_penalty": 0.0, "max_tool_calls": null,
            "incomplete_details": (status == "incomplete").then(|| json!({"reason": reason})),
            "instructions": body["instructions"], "max_output_tokens": body["max_output_tokens"],
            "model": self.said.ask.model(), "output": output, "parallel_tool_calls": true,
            "previous_response_id": null, "prompt_cache_key": body["prompt_cache_key"],
            "reasoning": {"effort": body["reasoning"]["effort"], "summary": body["reasoning"]["summary"]},
            "safety_identifier": null, "service_tier": if ended { "default" } else { "auto" },
            "store": body["store"] != false, "temperature": 1.0,
            "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto",
            "tools": body["tools"].as_array().cloned().unwrap_or_default(), "top_logprobs": 0, "top_p": 1.0,
            "truncation": "disabled", "user": null, "metadata": {},
            "usage": ended.then(|| json!({
                "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": self.said.thought_tokens()},
                "total_tokens": usage.input + usage.output,
            })),
        })
    }

    fn summarizes(&self) -> bool {
        let summary = &self.said.ask.body["reasoning"]["summary"];
        summary.is_string() && !self.said.answer.reasoning.is_empty()
    }

    fn open_reasoning(&mut self) -> String {
        self.reasoned = true;
        let item = self.reasoning("");
        let id = item["id"].clone();
        self.open = Some(Open::Reasoning(String::new()));
        let mut text = self.grow("response.output_item.added", json!({"item": item}));
        if self.summarizes() {
            let part =
                json!({"item_id": id, "summary_index": 0, "part": {"type": "summary_text", "text": ""}});
            text += &self.grow("response.reasoning_summary_part.added", part);
        }
        text
    }

    /// Returns a reasoning item. Its content is encrypted differently each time.
    fn reasoning(&self, summary: &str) -> Value {
        let id = self.item_id("rs_");
        let told =
            if summary.is_empty() { json!([]) } else { json!([{"type": "summary_text", "text": summary}]) };
        let mut item = json!({"id": id, "type": "reasoning", "summary": told});
        let include = self.said.ask.body["include"].as_array();
        if include.is_some_and(|list| list.iter().any(|what| what == "reasoning.encrypted_content")) {
            item["encrypted_content"] = seal::item(&id).into();
        }
        item
    }

    fn message(&self, status: &str, content: &Value) -> Value {
        json!({"id": self.item_id("msg_"), "type": "message", "status": status, "content": content, "role": "assistant"})
    }

    fn call(&self, status: &str, index: usize, arguments: &str) -> Value {
        json!({
            "id": self.item_id("fc_"), "type": "function_call", "status": status, "arguments": arguments,
            "call_id": self.said.call_id(index, "call_", 24), "name": self.said.call(index).name,
        })
    }

    /// Returns a reasoning item even if reasoning was not requested.
    fn silent_reasoning(&mut self) -> String {
        if self.reasoned || self.said.answer.reasoning.is_empty() {
            return String::new();
        }
        self.open_reasoning()
    }

    /// Ends the growing item.
    fn close(&mut self) -> String {
        let mut text = String::new();
        let status = if self.said.answer.reason() == "length" { "incomplete" } else { "completed" };
        let item = match self.open.take() {
            None => return text,
            Some(Open::Reasoning(summary)) => {
                let item = self.reasoning(&summary);
                if self.summarizes() {
                    let id = &item["id"];
                    let done = json!({"item_id": id, "summary_index": 0, "text": summary});
                    let part = json!({"type": "summary_text", "text": summary});
                    text += &self.grow("response.reasoning_summary_text.done", done);
                    let done = json!({"item_id": id, "summary_index": 0, "part": part});
                    text += &self.grow("response.reasoning_summary_part.done", done);
                }
                item
            }
            Some(Open::Message(words)) => {
                let part = output_text(&words);
                let item = self.message(status, &json!([part]));
                let id = &item["id"];
                let done = json!({"item_id": id, "content_index": 0, "text": words, "logprobs": []});
                text += &self.grow("response.output_text.done", done);
                let done = json!({"item_id": id, "content_index": 0, "part": part});
                text += &self.grow("response.content_part.done", done);
                item
            }
            Some(Open::Call(index, arguments)) => {
                let item = self.call(status, index, &arguments);
                let done = json!({"item_id": item["id"], "arguments": arguments, "name": item["name"]});
                text += &self.grow("response.function_call_arguments.done", done);
                item
            }
        };
        text += &self.grow("response.output_item.done", json!({"item": item}));
        self.done.push(item);
        text
    }

    fn said_text(&mut self, text: &str) -> String {
        let mut told = String::new();
        if !matches!(self.open, Some(Open::Message(_))) {
            told += &self.silent_reasoning();
            told += &self.close();
            self.open = Some(Open::Message(String::new()));
            let item = self.message("in_progress", &json!([]));
            let part = json!({"item_id": item["id"], "content_index": 0, "part": output_text("")});
            told += &self.grow("response.output_item.added", json!({"item": item}));
            told += &self.grow("response.content_part.added", part);
        }
        if let Some(Open::Message(words)) = &mut self.open {
            words.push_str(text);
        }
        let id = self.item_id("msg_");
        let delta =
            json!({"item_id": id, "content_index": 0, "delta": text, "logprobs": [], "obfuscation": "xx"});
        told + &self.grow("response.output_text.delta", delta)
    }

    /// Returns the final status.
    fn status(&self) -> &'static str {
        match self.said.answer.reason() {
            "length" | "content_filter" => "incomplete",
            _ => "completed",
        }
    }

    /// Returns the items of the final event, with their content encrypted differently again.
    fn output(&self) -> Vec<Value> {
        let again = |item: &Value| {
            let mut item = item.clone();
            if item["encrypted_content"].is_string() {
                let id = item["id"].as_str().unwrap_or_default().to_owned();
                item["encrypted_content"] = seal::item(&id).into();
            }
            item
        };
        self.done.iter().map(again).collect()
    }
}

impl Writer for ResponsesWriter {
    fn pieces(&self) -> VecDeque<Piece> {
        self.said.pieces(self.summarizes(), true)
    }

    fn piece(&mut self, piece: &Piece) -> String {
        match piece {
            Piece::Opening => {
                let response = self.response("in_progress", &[]);
                self.event("response.created", json!({"response": response}))
                    + &self.event("response.in_progress", json!({"response": response}))
            }
            Piece::Thought(text) => {
                let opened = if self.reasoned { String::new() } else { self.open_reasoning() };
                if let Some(Open::Reasoning(summary)) = &mut self.open {
                    summary.push_str(text);
                }
                let id = self.item_id("rs_");
                let delta = json!({"item_id": id, "summary_index": 0, "delta": text, "obfuscation": "xx"});
                opened + &self.grow("response.reasoning_summary_text.delta", delta)
            }
            Piece::Text(text) => self.said_text(text),
            Piece::Call(index) => {
                let before = self.silent_reasoning() + &self.close();
                self.open = Some(Open::Call(*index, String::new()));
                let item = self.call("in_progress", *index, "");
                before + &self.grow("response.output_item.added", json!({"item": item}))
            }
            Piece::Arguments(_, text) => {
                if let Some(Open::Call(_, arguments)) = &mut self.open {
                    arguments.push_str(text);
                }
                let id = self.item_id("fc_");
                let delta = json!({"item_id": id, "delta": text, "obfuscation": "xx"});
                self.grow("response.function_call_arguments.delta", delta)
            }
        }
    }

    fn tail(&mut self) -> String {
        let before = self.silent_reasoning() + &self.close();
        let status = self.status();
        let response = self.response(status, &self.output());
        before + &self.event(&format!("response.{status}"), json!({"response": response}))
    }

    /// Returns an event for the error, and one for the failed response.
    fn error(&mut self, message: &str) -> String {
        let mut error = errors::openai(500, message, None)["error"].take();
        error["code"] = "server_error".into();
        let mut response = self.response("failed", &[]);
        response["error"] = json!({"code": "server_error", "message": message});
        response["usage"] = Value::Null;
        self.event("error", json!({"error": error}))
            + &self.event("response.failed", json!({"response": response}))
    }

    fn garbage(&self) -> &'static str {
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_te\n\n"
    }

    fn whole(&mut self) -> Value {
        for piece in mem::take(&mut self.pieces()) {
            self.piece(&piece);
        }
        self.tail();
        self.response(self.status(), &self.output())
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}
