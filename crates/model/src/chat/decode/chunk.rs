//! Chunks as sent by servers. Every field may be missing or null.

use crate::usage::{UsageReport, to_usage};
use pudu_base::Usage;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Option<Vec<CompletionChoice>>,
    pub(super) usage: Option<UsagePart>,
    pub(super) x_groq: Option<GroqPart>,
    error: Option<Value>,
    object: Option<Value>,
    base_resp: Option<Value>,
}

impl Chunk {
    /// Returns the error in the chunk, if any.
    pub(super) fn failure(&self) -> Option<&Value> {
        let status =
            self.base_resp.as_ref().filter(|status| status["status_code"].as_u64().unwrap_or(0) != 0);
        self.error.as_ref().filter(|error| !error.is_null()).or(status)
    }

    /// Returns whether the whole chunk is an error, as sent by vLLM.
    pub(super) fn is_failure(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object == "error")
    }
}

#[derive(Deserialize)]
pub(super) struct GroqPart {
    pub(super) usage: Option<UsagePart>,
}

#[derive(Deserialize)]
pub(super) struct CompletionChoice {
    pub(super) index: Option<u64>,
    pub(super) delta: Option<ContentPart>,
    pub(super) message: Option<ContentPart>,
    pub(super) finish_reason: Option<Value>,
    /// Kimi sends the usage here.
    pub(super) usage: Option<UsagePart>,
}

#[derive(Deserialize)]
pub(super) struct ContentPart {
    pub(super) content: Option<Value>,
    pub(super) reasoning_content: Option<Value>,
    pub(super) reasoning: Option<Value>,
    pub(super) reasoning_details: Option<Vec<Value>>,
    pub(super) refusal: Option<String>,
    /// Images that the model generated, in OpenRouter's field.
    pub(super) images: Option<Vec<Value>>,
    pub(super) tool_calls: Option<Vec<CallPart>>,
}

#[derive(Deserialize)]
pub(super) struct CallPart {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) function: Option<FunctionPart>,
    pub(super) extra_content: Option<Value>,
}

#[derive(Default, Deserialize)]
pub(super) struct FunctionPart {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Value>,
}

/// Splits content, which is a string or a list of blocks, into thoughts and text.
pub(super) fn split_content(content: Value) -> (String, String) {
    let (mut thoughts, mut words) = (String::new(), String::new());
    match content {
        Value::String(text) => words = text,
        Value::Array(blocks) => {
            for block in &blocks {
                if let Some(inner) = block.get("thinking") {
                    thoughts.push_str(&text_of(inner));
                } else {
                    words.push_str(&text_of(block));
                }
            }
        }
        _ => {}
    }
    (thoughts, words)
}

/// Returns the text of a block or of a list of blocks.
fn text_of(block: &Value) -> String {
    match block {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(text_of).collect(),
        block => block.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

/// Token usage, with the field names of all providers.
#[derive(Default, Deserialize)]
pub(super) struct UsagePart {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// Used by DeepSeek.
    prompt_cache_hit_tokens: Option<u64>,
    /// Used by Kimi.
    cached_tokens: Option<u64>,
    /// Used by gateways to Anthropic.
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    audio_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<UsagePart> for Usage {
    fn from(part: UsagePart) -> Self {
        let prompt = part.prompt_tokens_details.unwrap_or_default();
        let cached = prompt.cached_tokens.or(part.prompt_cache_hit_tokens).or(part.cached_tokens);
        let cached = cached.or(part.cache_read_input_tokens).unwrap_or(0);
        let cache_writes = prompt.cache_write_tokens.or(part.cache_creation_input_tokens).unwrap_or(0);
        let reasoning = part.completion_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0);
        let (input, output) = (part.prompt_tokens.unwrap_or(0), part.completion_tokens.unwrap_or(0));
        let reported = Self { input, output, cached, cache_writes, reasoning };
        let audio = prompt.audio_tokens.unwrap_or(0);
        to_usage(&UsageReport { reported, audio, total: part.total_tokens })
    }
}
