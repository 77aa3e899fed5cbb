//! Decodes replies of the wire into deltas.

use crate::{
    calls::{CallPiece, PartialCalls},
    finish::finish,
    refusal,
    think::{Said, ThinkHabit, ThinkSplitter},
    wire::{self, EventDecoder, cut},
};
use pudu_base::{Delta, Finish, ModelError, Usage};
use serde::Deserialize;
use serde_json::Value;

/// A document as sent by the server. Every field may be missing or null.
#[derive(Deserialize)]
struct ReplyDocument {
    message: Option<MessagePart>,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct MessagePart {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<OllamaCallPart>>,
}

#[derive(Deserialize)]
struct OllamaCallPart {
    id: Option<String>,
    function: Option<OllamaFunctionPart>,
}

#[derive(Default, Deserialize)]
struct OllamaFunctionPart {
    name: Option<String>,
    arguments: Option<Value>,
}

/// Decodes the documents of one reply.
#[derive(Debug, Default)]
pub(super) struct DocumentDecoder {
    split: ThinkSplitter,
    calls: PartialCalls,
    call_count: u64,
    done: bool,
}

impl DocumentDecoder {
    pub(super) fn new(habit: &ThinkHabit) -> Self {
        Self { split: ThinkSplitter::new(habit), ..Self::default() }
    }

    fn message(&mut self, part: MessagePart, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if let Some(thought) = part.thinking.filter(|thought| !thought.is_empty()) {
            if let Some(said) = self.split.thinks_elsewhere() {
                self.push_piece(said, out);
            }
            self.push_piece(Said::Thought(thought), out);
        }
        for said in self.split.push(&part.content.unwrap_or_default()) {
            self.push_piece(said, out);
        }
        part.tool_calls.into_iter().flatten().try_for_each(|call| self.call(call))
    }

    fn push_piece(&self, said: Said, out: &mut Vec<Delta>) {
        match said {
            Said::Words(words) => out.push(Delta::Text(words)),
            Said::Thought(thought) => out.push(Delta::Reasoning(thought)),
            Said::Retract => out.push(Delta::Retract),
        }
    }

    /// Adds a call, which is always complete.
    fn call(&mut self, call: OllamaCallPart) -> Result<(), ModelError> {
        let function = call.function.unwrap_or_default();
        let arguments = match function.arguments {
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let index = Some(self.call_count);
        self.call_count += 1;
        let (id, name) = (call.id.unwrap_or_default(), function.name.unwrap_or_default());
        self.calls.push(CallPiece { index, id, name, arguments, is_open: false }).map(drop)
    }

    fn conclude(&mut self, finish: Finish, usage: Option<Usage>, out: &mut Vec<Delta>) {
        self.done = true;
        if let Some(said) = self.split.end() {
            self.push_piece(said, out);
        }
        out.extend(self.calls.take(finish).into_iter().map(Delta::Call));
        out.extend(usage.map(Delta::Usage));
        out.push(Delta::Finish(finish));
    }
}

impl EventDecoder for DocumentDecoder {
    fn event(&mut self, _: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        let document: ReplyDocument = wire::read(data)?;
        if document.error.is_some_and(|error| !error.is_null()) {
            return Err(refusal::in_stream_text(data));
        }
        if let Some(part) = document.message {
            self.message(part, out)?;
        }
        if document.done == Some(true) {
            let finish = finish(document.done_reason.as_deref().unwrap_or_default())?;
            // Ollama does not count a cached prompt. The number of its tokens is unknown and reported as 0.
            let (input, output) = (document.prompt_eval_count, document.eval_count);
            let usage =
                (input.or(output).is_some()).then(|| Usage::plain(input.unwrap_or(0), output.unwrap_or(0)));
            self.conclude(finish.unwrap_or(Finish::Complete), usage, out);
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done { Ok(()) } else { Err(cut()) }
    }

    /// Only the last document, which ends the reply, reports the usage.
    fn usage(&mut self) -> Option<Usage> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Dialect, ModelSettings, WireKind,
        testing::{self, Reply, call},
    };
    use serde_json::json;

    fn read(documents: &[Value]) -> Result<Reply, ModelError> {
        let dialect = Dialect { thoughts: Some("thinking"), ..Dialect::PLAIN };
        let settings = ModelSettings { dialect, ..ModelSettings::plain("m", WireKind::Ollama) };
        let lines: String = documents.iter().map(|document| format!("{document}\n")).collect();
        testing::read(&settings, lines.as_bytes())
    }

    fn content_chunk(text: &str) -> Value {
        json!({"model": "m", "message": {"role": "assistant", "content": text}, "done": false})
    }

    fn end(reason: &str) -> Value {
        json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
            "prompt_eval_count": 3, "eval_count": 2})
    }

    #[test]
    fn text_thoughts_and_usage_are_decoded() {
        let thought = json!({"message": {"content": "", "thinking": "hm"}, "done": false});
        let expect = Reply { reasoning: "hm".into(), ..Reply::with_text("Hello", Finish::Complete) };
        let expect = expect.with_usage(Usage::plain(3, 2));
        assert_eq!(
            read(&[thought, content_chunk("Hel"), content_chunk("lo"), end("stop")]),
            Ok(expect.clone())
        );
        assert_eq!(
            read(&[content_chunk("<think>hm</th"), content_chunk("ink>\nHello"), end("stop")]),
            Ok(expect)
        );
    }

    #[test]
    fn calls_arrive_complete_and_without_ids_before_the_end() {
        let part = |n: u64| json!({"function": {"name": "f", "arguments": {"n": n}}});
        let calls = |parts: Value| json!({"message": {"content": "", "tool_calls": parts}, "done": false});
        let reply = read(&[calls(json!([part(1), part(2)])), calls(json!([part(3)])), end("stop")]).unwrap();
        let expect = [("call-0", 1), ("call-1", 2), ("call-2", 3)];
        assert_eq!(reply.calls, expect.map(|(id, n)| call(id, "f", json!({"n": n}))));
    }

    #[test]
    fn the_reason_determines_the_finish_and_a_truncated_stream_is_an_error() {
        assert_eq!(read(&[content_chunk("a"), end("length")]).unwrap().finish, Some(Finish::Length));
        assert_eq!(read(&[end("load")]).unwrap().finish, Some(Finish::Complete));
        let bare = json!({"message": null, "done": true, "done_reason": null, "eval_count": null});
        assert_eq!(read(&[content_chunk("a"), bare]), Ok(Reply::with_text("a", Finish::Complete)));
        let cached = json!({"done": true, "done_reason": "stop", "eval_count": 2});
        assert_eq!(read(&[cached]).unwrap().usage, Some(Usage::plain(0, 2)));
        assert_eq!(read(&[content_chunk("a")]), Err(cut()));
        let error = read(&[content_chunk("a"), json!({"error": "runner stopped"})]);
        assert_eq!(error, Err(ModelError::Failed("HTTP 500: runner stopped".into())));
    }
}
