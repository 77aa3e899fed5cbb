//! The wire's answer as deltas. Knows bytes, not sockets.

use pudu_base::{Delta, Finish, ModelError, ToolCall, Usage};
use pudu_net::sse;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of parallel calls in a reply; more is a broken or hostile server.
const MAX_PARALLEL_CALLS: usize = 128;
/// Maximum size of an unstreamed response, in bytes.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// Turns the bytes of one answer into deltas, whether it is streamed or, from servers that do not
/// stream, whole.
#[derive(Debug, Default)]
pub(super) struct ChunkDecoder {
    sse: sse::SseDecoder,
    whole: Option<Vec<u8>>,
    calls: BTreeMap<usize, PartialCall>,
    finish: Option<Finish>,
    thoughts: bool,
    done: bool,
}

#[derive(Debug, Default)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
}

impl ChunkDecoder {
    /// Makes one; `whole` for an answer that is one JSON document, `thoughts` to get the model's thoughts
    /// as well.
    pub(super) fn new(whole: bool, thoughts: bool) -> Self {
        Self { whole: whole.then(Vec::new), thoughts, ..Self::default() }
    }

    /// Feeds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, ModelError> {
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(bytes);
            return if whole.len() > MAX_RESPONSE_BYTES {
                Err(garbled("the answer is too large"))
            } else {
                Ok(vec![])
            };
        }
        let mut deltas = Vec::new();
        for event in self.sse.push(bytes).map_err(|_| garbled("an event is too large"))? {
            self.event(event.data.trim(), &mut deltas)?;
        }
        Ok(deltas)
    }

    /// Ends the stream: no more bytes come.
    pub(super) fn end(&mut self) -> Result<Vec<Delta>, ModelError> {
        let mut deltas = Vec::new();
        if let Some(whole) = self.whole.take() {
            let text = String::from_utf8_lossy(&whole);
            self.event(&text, &mut deltas)?;
        }
        // Some servers close after the finish reason without the last marker.
        self.conclude(&mut deltas);
        if self.done { Ok(deltas) } else { Err(ModelError::Unreachable("the answer was cut".into())) }
    }

    fn event(&mut self, data: &str, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        if data == "[DONE]" {
            // A server that ends properly but gave no reason has said all that it had to say.
            self.finish.get_or_insert(Finish::Complete);
            self.conclude(deltas);
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| garbled(&error.to_string()))?;
        if let Some(error) = chunk.error {
            return Err(super::refusal::in_stream(&error));
        }
        // The choices of a whole answer carry `message` where those of a stream carry `delta`.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            if let Some(part) = choice.delta.or(choice.message) {
                self.part(part, deltas)?;
            }
            if let Some(reason) = choice.finish_reason {
                self.finish = Some(finish(&reason));
            }
        }
        deltas.extend(
            chunk.usage.map(|usage| Delta::Usage(Usage::plain(usage.prompt_tokens, usage.completion_tokens))),
        );
        Ok(())
    }

    fn part(&mut self, part: ContentPart, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        let spoken = |text: Option<String>| text.filter(|text| !text.is_empty());
        let thought = spoken(part.reasoning_content.or(part.reasoning)).filter(|_| self.thoughts);
        deltas.extend(thought.map(Delta::Reasoning));
        deltas.extend(spoken(part.content.and_then(CompletionContent::text)).map(Delta::Text));
        for (place, call) in part.tool_calls.into_iter().flatten().enumerate() {
            let index = call.index.unwrap_or(place);
            let partial = self.calls.entry(index).or_default();
            partial.take(call);
            let size = partial.arguments.len();
            if self.calls.len() > MAX_PARALLEL_CALLS || size > MAX_RESPONSE_BYTES {
                return Err(garbled("too many or too large tool calls"));
            }
        }
        Ok(())
    }

    fn conclude(&mut self, deltas: &mut Vec<Delta>) {
        let Some(finish) = self.finish.filter(|_| !self.done) else { return };
        self.done = true;
        let calls = std::mem::take(&mut self.calls);
        deltas.extend(calls.into_values().enumerate().map(|(at, call)| Delta::Call(call.whole(at))));
        deltas.push(Delta::Finish(finish));
    }
}

impl PartialCall {
    fn take(&mut self, call: CallPart) {
        // Ids and names come whole, but some servers repeat them with every piece.
        if let Some(id) = call.id.filter(|id| !id.is_empty()) {
            self.id = id;
        }
        let Some(function) = call.function else { return };
        if let Some(name) = function.name.filter(|name| !name.is_empty()) {
            self.name = name;
        }
        match function.arguments {
            Some(Value::String(piece)) => self.arguments.push_str(&piece),
            Some(object @ Value::Object(_)) => self.arguments = object.to_string(),
            _ => {}
        }
    }

    fn whole(self, at: usize) -> ToolCall {
        let text = self.arguments.trim();
        let args = if text.is_empty() {
            Some(Value::Object(Map::new()))
        } else {
            serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
        };
        ToolCall {
            id: if self.id.is_empty() { format!("call-{at}").into() } else { self.id.into() },
            name: if self.name.is_empty() { "unknown_tool".to_owned() } else { self.name },
            garbled: args.is_none().then(|| text.to_owned()),
            args: args.unwrap_or_else(|| Value::Object(Map::new())),
        }
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "length" | "max_tokens" => Finish::Length,
        "content_filter" | "refusal" | "safety" => Finish::Filtered,
        _ => Finish::Complete,
    }
}

fn garbled(detail: &str) -> ModelError {
    ModelError::Garbled(detail.to_owned())
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<CompletionChoice>>,
    usage: Option<UsagePart>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct CompletionChoice {
    delta: Option<ContentPart>,
    message: Option<ContentPart>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ContentPart {
    content: Option<CompletionContent>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallPart>>,
}

/// Text, or blocks of which the text ones count.
#[derive(Deserialize)]
#[serde(untagged)]
enum CompletionContent {
    Text(String),
    Blocks(Vec<Value>),
}

impl CompletionContent {
    #[allow(clippy::unnecessary_wraps, reason = "used as a filter in a chain of options")]
    fn text(self) -> Option<String> {
        Some(match self {
            Self::Text(text) => text,
            Self::Blocks(blocks) => {
                blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect::<String>()
            }
        })
    }
}

#[derive(Deserialize)]
struct CallPart {
    index: Option<usize>,
    id: Option<String>,
    function: Option<FunctionPart>,
}

#[derive(Deserialize)]
struct FunctionPart {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct UsagePart {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

#[cfg(test)]
mod tests;
