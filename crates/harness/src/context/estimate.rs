//! Estimates tokens. Only the provider knows the exact count, so each call that it counts corrects the next estimate.

use pudu_base::{Message, ModelImage, Request, ThreadState, ToolSpec};
use serde_json::Value;

/// Number of bytes that count as one token: English has about four per token, Chinese three.
const BYTES_PER_TOKEN: u64 = 3;
/// Tokens of an image: about the maximum that providers count for a scaled-down one.
pub(super) const IMAGE_TOKENS: u64 = 1_600;
/// Bytes that a message takes besides its text.
const MESSAGE_BYTES: usize = 16;
/// Maximum number of bytes before a user's text, besides files and notes.
const HEAD_BYTES: usize = 256;
/// Bounds of the correction, in thousandths, in case a provider reports nonsense.
const CORRECTION: (u64, u64) = (300, 3_000);
/// Bounds of a correction by a call of an earlier run, since the request may have changed.
const EARLIER: (u64, u64) = (600, 1_500);

/// Estimates tokens of one model.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenEstimate {
    /// Correction, in thousandths.
    scale: u64,
}

impl Default for TokenEstimate {
    fn default() -> Self {
        Self { scale: 1_000 }
    }
}

impl TokenEstimate {
    /// Corrects the estimate with the provider's token count for a number of bytes.
    pub(super) fn learn(&mut self, bytes: u64, counted: u64) {
        self.correct(bytes, counted, CORRECTION);
    }

    /// Starts from the usage of the thread's last call, if the same model answered it.
    pub(super) fn recall(&mut self, state: &ThreadState, model: &str, shown: &Request) {
        let last = shown.messages.iter().enumerate().rev().find_map(|(at, message)| match &**message {
            Message::Assistant(reply) => Some((at, reply)),
            Message::Human(_) | Message::Tool(_) | Message::Reminder(_) => None,
        });
        let Some((at, reply)) = last.filter(|(_, reply)| reply.model.as_deref() == Some(model)) else {
            return;
        };
        let Some(usage) = reply.usage.filter(|_| state.messages.contains_key(&reply.id)) else { return };
        let before = shown.messages.iter().take(at).map(|message| message_bytes(message)).sum::<u64>();
        self.correct(fixed_bytes(shown) + before, usage.input, EARLIER);
    }

    fn correct(&mut self, bytes: u64, counted: u64, (least, most): (u64, u64)) {
        let estimated = bytes / BYTES_PER_TOKEN;
        if counted > 0 && estimated > 0 {
            self.scale = (counted.saturating_mul(1_000) / estimated).clamp(least, most);
        }
    }

    /// Returns the estimated number of tokens in a number of bytes.
    pub(super) fn tokens(self, bytes: u64) -> u64 {
        (bytes / BYTES_PER_TOKEN).saturating_mul(self.scale) / 1_000
    }

    /// Returns the estimated tokens of a message.
    pub(super) fn message(self, message: &Message) -> u64 {
        self.tokens(message_bytes(message))
    }

    /// Returns the estimated tokens of messages.
    pub(super) fn messages<'a>(self, messages: impl IntoIterator<Item = &'a std::sync::Arc<Message>>) -> u64 {
        self.tokens(messages.into_iter().map(|message| message_bytes(message)).sum())
    }

    /// Returns the estimated tokens of everything before a request's messages, and of its images.
    pub(super) fn fixed(self, request: &Request) -> u64 {
        self.tokens(fixed_bytes(request)) + image_tokens(&request.images)
    }
}

fn image_tokens(images: &[ModelImage]) -> u64 {
    images.len() as u64 * IMAGE_TOKENS
}

/// Estimates a request's tokens from its bytes alone, erring on the high side.
#[must_use]
pub fn estimated_tokens(request: &Request) -> u64 {
    TokenEstimate::default().tokens(request_bytes(request)) + image_tokens(&request.images)
}

/// Estimates the tokens of a reply with a number of bytes, erring on the high side.
#[must_use]
pub fn estimated_reply_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Returns the approximate size of a request in bytes, without its images.
pub(super) fn request_bytes(request: &Request) -> u64 {
    fixed_bytes(request) + request.messages.iter().map(|message| message_bytes(message)).sum::<u64>()
}

fn fixed_bytes(request: &Request) -> u64 {
    let tool =
        |spec: &ToolSpec| spec.name.len() + spec.description.len() + value_bytes(&spec.parameters) + 40;
    (request.system.len() + request.tools.iter().map(|spec| tool(spec)).sum::<usize>()) as u64
}

/// Returns the approximate size of a message in bytes, without its images.
#[must_use]
pub fn message_bytes(message: &Message) -> u64 {
    let more = match message {
        Message::Assistant(reply) => {
            let calls: usize =
                reply.calls.iter().map(|call| value_bytes(&call.args) + call.name.len() + 24).sum();
            // Signed thoughts are sent back within the parts; readable ones are for display only.
            let thoughts = || reply.reasoning.as_ref().map_or(0, String::len);
            let parts = reply.provider_parts.as_ref();
            calls + parts.map_or_else(thoughts, |parts| value_bytes(&parts.parts))
        }
        Message::Human(human) => {
            let guide = human.guide.as_ref().map_or(0, String::len);
            let head = if human.at.is_some() || human.sender.is_some() { HEAD_BYTES } else { 0 };
            let notes: usize = human.notes.iter().map(String::len).sum();
            let files: usize = human.files.iter().map(|file| file.describe().len()).sum();
            files + guide + head + notes + pudu_base::pointed::size(&human.pointed)
        }
        Message::Tool(_) => 0,
        // A reminder is sent in a frame.
        Message::Reminder(_) => HEAD_BYTES,
    };
    (message.text().len() + more + MESSAGE_BYTES) as u64
}

/// Returns the approximate size of a value in bytes.
#[must_use]
pub fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(value_bytes).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter().map(|(key, item)| key.len() + 4 + value_bytes(item)).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_providers_count_corrects_the_estimate_within_bounds() {
        let check = |counted, expect| {
            let mut estimate = TokenEstimate::default();
            estimate.learn(3_000, counted);
            assert_eq!(estimate.tokens(3_000), expect, "{counted} tokens were counted");
        };
        check(750, 750);
        check(1_400, 1_400);
        check(0, 1_000);
        check(1, 300);
        check(1_000_000, 3_000);
    }
}
