//! Chunks as sent by servers. Every field may be missing or null.

use pudu_base::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Field of a part that contains the signature of its thoughts.
pub(crate) const SIGNATURE: &str = "thoughtSignature";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContentChunk {
    pub(super) candidates: Option<Vec<ReplyCandidate>>,
    pub(super) prompt_feedback: Option<PromptFeedback>,
    pub(super) usage_metadata: Option<ContentUsage>,
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    block_reason: Option<String>,
}

impl PromptFeedback {
    /// Returns whether the prompt was refused. The feedback for an accepted prompt contains only ratings.
    pub(super) fn is_refusal(&self) -> bool {
        self.block_reason.as_deref().is_some_and(|reason| !matches!(reason, "" | "BLOCK_REASON_UNSPECIFIED"))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplyCandidate {
    pub(super) index: Option<u64>,
    pub(super) content: Option<CandidateContent>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CandidateContent {
    pub(super) parts: Option<Vec<CandidatePart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CandidatePart {
    pub(super) text: Option<String>,
    pub(super) thought: Option<bool>,
    pub(super) function_call: Option<FunctionCallPart>,
    #[serde(rename = "thoughtSignature", alias = "thought_signature")]
    pub(super) signature: Option<String>,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

impl CandidatePart {
    /// Returns the unchanged part, which must not be a call.
    pub(super) fn into_raw(self) -> Map<String, Value> {
        let mut raw = self.rest;
        raw.extend(self.text.map(|text| ("text".to_owned(), text.into())));
        raw.extend(self.thought.map(|thought| ("thought".to_owned(), thought.into())));
        raw.extend(self.signature.map(|signature| (SIGNATURE.to_owned(), signature.into())));
        raw
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCallPart {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) args: Option<Value>,
    pub(super) partial_args: Option<Vec<PartialArgument>>,
    pub(super) will_continue: Option<bool>,
}

impl FunctionCallPart {
    /// Returns whether the part is a piece of a call with streamed arguments.
    pub(super) fn is_piece(&self) -> bool {
        self.partial_args.is_some() || self.will_continue == Some(true)
    }

    /// Returns whether more pieces of the call follow, as reported by the part or by the last of its argument pieces.
    pub(super) fn is_continued(&self) -> bool {
        let last = self.partial_args.as_ref().and_then(|pieces| pieces.last());
        self.will_continue.or(last.and_then(|piece| piece.will_continue)) == Some(true)
    }

    /// Returns whether the part is empty, which ends a call with streamed arguments.
    pub(super) fn is_end(&self) -> bool {
        self.name.as_deref().unwrap_or_default().is_empty() && self.args.is_none() && !self.is_piece()
    }
}

/// A value, or a piece of a string, with its path.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialArgument {
    pub(super) json_path: Option<String>,
    pub(super) string_value: Option<String>,
    pub(super) number_value: Option<Value>,
    pub(super) bool_value: Option<bool>,
    pub(super) will_continue: Option<bool>,
}

/// The usage so far. Chunks repeat it, sometimes only in part.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContentUsage {
    prompt_token_count: Option<u64>,
    /// Tokens of results from tools that ran at the provider.
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

impl ContentUsage {
    pub(super) fn update(&mut self, later: Self) {
        for (known, later) in [
            (&mut self.prompt_token_count, later.prompt_token_count),
            (&mut self.tool_use_prompt_token_count, later.tool_use_prompt_token_count),
            (&mut self.candidates_token_count, later.candidates_token_count),
            (&mut self.thoughts_token_count, later.thoughts_token_count),
            (&mut self.cached_content_token_count, later.cached_content_token_count),
        ] {
            *known = later.or(*known);
        }
    }
}

impl From<ContentUsage> for Usage {
    fn from(usage: ContentUsage) -> Self {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let reasoning = count(usage.thoughts_token_count);
        Self {
            input: count(usage.prompt_token_count).saturating_add(count(usage.tool_use_prompt_token_count)),
            // This API reports thoughts separately from the output, and includes cached tokens in the prompt.
            output: count(usage.candidates_token_count).saturating_add(reasoning),
            cached: count(usage.cached_content_token_count),
            cache_writes: 0,
            reasoning,
        }
    }
}
