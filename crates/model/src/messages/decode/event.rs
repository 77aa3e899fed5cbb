//! Events as sent by servers. Every field may be missing or null.

use pudu_base::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
pub(super) struct MessageEvent {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) message: Option<MessageDocument>,
    pub(super) index: Option<u64>,
    pub(super) content_block: Option<Map<String, Value>>,
    pub(super) delta: Option<BlockDelta>,
    pub(super) usage: Option<MessageUsage>,
    pub(super) error: Option<Value>,
}

/// The beginning of a message, or a complete message.
#[derive(Default, Deserialize)]
pub(super) struct MessageDocument {
    pub(super) id: Option<String>,
    pub(super) content: Option<Vec<Map<String, Value>>>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Option<MessageUsage>,
}

/// A piece of a block, or the end of a message.
#[derive(Default, Deserialize)]
pub(super) struct BlockDelta {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) partial_json: Option<String>,
    pub(super) stop_reason: Option<String>,
}

/// The usage so far. Each report is a running total.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageUsage {
    #[serde(rename = "type")]
    kind: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens_details: Option<MessageOutputDetails>,
    /// The model calls that the provider made for this reply, each with its own usage. The other fields may count only
    /// the last call.
    iterations: Option<Vec<Self>>,
}

#[derive(Debug, Default, Deserialize)]
struct MessageOutputDetails {
    thinking_tokens: Option<u64>,
}

impl MessageUsage {
    /// Keeps the larger value of each counter: a gateway that reports the input at the end reports 0 at the beginning,
    /// and vice versa.
    pub(super) fn update(&mut self, later: Self) {
        self.input_tokens = self.input_tokens.max(later.input_tokens);
        self.output_tokens = self.output_tokens.max(later.output_tokens);
        self.cache_read_input_tokens = self.cache_read_input_tokens.max(later.cache_read_input_tokens);
        self.cache_creation_input_tokens =
            self.cache_creation_input_tokens.max(later.cache_creation_input_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details.take());
        self.iterations = later.iterations.or(self.iterations.take());
    }
}

impl From<MessageUsage> for Usage {
    fn from(reported: MessageUsage) -> Self {
        let (cached, cache_writes) = (
            reported.cache_read_input_tokens.unwrap_or(0),
            reported.cache_creation_input_tokens.unwrap_or(0),
        );
        let usage = Self {
            // This API does not count tokens read from or written to the cache as input.
            input: reported.input_tokens.unwrap_or(0).saturating_add(cached).saturating_add(cache_writes),
            output: reported.output_tokens.unwrap_or(0),
            cached,
            cache_writes,
            reasoning: reported
                .output_tokens_details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(0),
        };
        let mut all = Self::default();
        // An advisor is a different model with different prices, which only the operator's body keys can request.
        let is_own = |iteration: &MessageUsage| iteration.kind.as_deref() != Some("advisor_message");
        for iteration in reported.iterations.into_iter().flatten().filter(is_own) {
            all += iteration.into();
        }
        if all.total() > usage.total() { Self { reasoning: usage.reasoning, ..all } } else { usage }
    }
}
