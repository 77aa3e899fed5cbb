//! Finish reasons of all providers on all wires. No reason has two meanings.

use crate::wire::garbled;
use pudu_base::{Finish, ModelError};

/// Returns the meaning of a finish reason; `None` if it is empty.
///
/// # Errors
/// When the reason is a failure.
pub(crate) fn finish(reason: &str) -> Result<Option<Finish>, ModelError> {
    let word = reason.trim().to_ascii_lowercase();
    let finish = match word.as_str() {
        "" | "finish_reason_unspecified" | "null" => return Ok(None),
        "stop" | "end_turn" | "eos" | "eos_token" | "stop_sequence" | "tool_calls" | "tool_call"
        | "tool_use" | "function_call" | "complete" | "completed" | "done" | "load" | "unload" => {
            Finish::Complete
        }
        "length" | "max_tokens" | "max_output_tokens" | "max_length" => Finish::Length,
        "pause_turn" => Finish::Paused,
        _ if FILTERS.contains(&word.as_str()) => Finish::Filtered,
        "model_context_window_exceeded" | "context_length_exceeded" => {
            return Err(ModelError::TooLong(format!("the reply ended with {word}")));
        }
        _ if BREAKS.contains(&word.as_str()) => {
            return Err(ModelError::Cut(format!("the provider stopped with {word}")));
        }
        // The cause is in the thread, so a retry would fail as well.
        "missing_thought_signature" => {
            return Err(ModelError::Rejected(format!("the reply ended with {word}")));
        }
        "malformed_function_call" | "unexpected_tool_call" | "malformed_response" | "too_many_tool_calls" => {
            return Err(garbled(format!("the reply ended with {word}")));
        }
        // An unknown reason may indicate a truncated reply, so users are informed that it may be incomplete.
        _ => Finish::Length,
    };
    Ok(Some(finish))
}

const FILTERS: [&str; 14] = [
    "content_filter",
    "content_filtered",
    "refusal",
    "safety",
    "sensitive",
    "spii",
    "blocklist",
    "prohibited_content",
    "recitation",
    "language",
    "image_safety",
    "image_prohibited_content",
    "image_recitation",
    "guardrail_intervened",
];

const BREAKS: [&str; 8] = [
    "error",
    "network_error",
    "abort",
    "aborted",
    "cancelled",
    "insufficient_system_resource",
    "failed",
    "timeout",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 18 and 19 of the quirks table.
    #[test]
    fn row_18_and_19_finish_reasons_have_their_providers_meaning() {
        let ok = |reason: &str| finish(reason).unwrap();
        for reason in ["stop", "STOP", "end_turn", "eos", "tool_calls", "function_call"] {
            assert_eq!(ok(reason), Some(Finish::Complete), "{reason}");
        }
        for reason in ["length", "MAX_TOKENS", "max_output_tokens", "of_tomorrow"] {
            assert_eq!(ok(reason), Some(Finish::Length), "{reason}");
        }
        for reason in ["content_filter", "sensitive", "SPII", "refusal", "IMAGE_SAFETY"] {
            assert_eq!(ok(reason), Some(Finish::Filtered), "{reason}");
        }
        for reason in ["", " ", "FINISH_REASON_UNSPECIFIED"] {
            assert_eq!(ok(reason), None, "{reason:?}");
        }
        for reason in ["error", "network_error", "abort", "insufficient_system_resource"] {
            assert!(matches!(finish(reason), Err(ModelError::Cut(_))), "{reason}");
        }
        assert!(matches!(finish("model_context_window_exceeded"), Err(ModelError::TooLong(_))));
        assert!(matches!(finish("MALFORMED_FUNCTION_CALL"), Err(ModelError::Garbled(_))));
        assert!(matches!(finish("TOO_MANY_TOOL_CALLS"), Err(ModelError::Garbled(_))));
        assert!(matches!(finish("MISSING_THOUGHT_SIGNATURE"), Err(ModelError::Rejected(_))));
        assert_eq!(ok("pause_turn"), Some(Finish::Paused));
    }
}
