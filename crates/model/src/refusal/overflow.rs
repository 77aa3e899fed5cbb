//! Errors about the length of a request. Each provider has its own message for a request that exceeds the model's
//! context. Some resemble messages about a different error: rate limits in tokens per minute.

/// Codes and types of the error.
const CODES: [&str; 8] = [
    "context_length_exceeded",
    "string_above_max_length",
    "exceed_context_size_error",
    "max_prompt_tokens_exceeded",
    "model_max_prompt_tokens_exceeded",
    "model_context_window_exceeded",
    "request_too_large",
    "1261",
];

/// Phrases in messages about the error, in lower case.
const SIGNS: [&str; 25] = [
    "context length",
    "context window",
    "context size",
    "context limit",
    "maximum context",
    "max context",
    "maximum prompt length",
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "input is too long",
    "input length should be",
    "input length exceeds",
    "input token count",
    "prompt token count",
    "too many tokens",
    "too many input tokens",
    "token limit exceeded",
    "exceeded model token limit",
    "exceed max message tokens",
    "exceeds the maximum number of tokens",
    "exceeds the model's maximum",
    "reduce the length of the messages",
    "request entity too large",
    "输入过长",
];

/// Phrases in messages about rate limits or credit.
const LIMITS: [&str; 9] = [
    "rate limit",
    "rate_limit",
    "per minute",
    "per day",
    "tokens per",
    "quota",
    "throttl",
    "please wait",
    "too many requests",
];

/// Returns whether an error is about the length of the request; `said` is in lower case.
pub(super) fn is_overflow(status: u16, codes: &[String], said: &str) -> bool {
    if codes.iter().any(|code| CODES.contains(&code.as_str())) {
        return true;
    }
    // An error with one of these statuses is about a key, credit, an unknown model or a rate limit, not about length.
    let speaks_of_length = !matches!(status, 401..=404 | 429 | 529);
    speaks_of_length
        && SIGNS.iter().any(|sign| said.contains(sign))
        && !LIMITS.iter().any(|limit| said.contains(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_errors_are_distinguished_from_rate_limits() {
        for said in [
            "this model's maximum context length is 8192 tokens. however, you requested 9000",
            "prompt is too long: 213462 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            "your input exceeds the context window of this model.",
            "the input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            "this model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "please reduce the length of the messages or completion.",
            "the request exceeds the available context size, try increasing it",
            "trying to keep the first 9000 tokens when context length is 4096",
            "invalid params, context window exceeds limit (2013)",
            "your request exceeded model token limit: 262144",
            "prompt contains 90000 tokens … too large for model with 32768 maximum context length",
            "range of input length should be [1, 129024]",
            "prompt too long; exceeded max context length by 12 tokens",
            "prompt token count of 150000 exceeds the limit of 128000",
            "total tokens of image and text exceed max message tokens",
        ] {
            assert!(is_overflow(400, &[], said), "{said}");
        }
        for said in [
            "too many tokens, please wait before trying again.",
            "rate limit reached: 30000 input token count per minute",
            "no such argument",
        ] {
            assert!(!is_overflow(400, &[], said), "{said}");
        }
        assert!(!is_overflow(429, &[], "request too large: context length"), "a 429 is about the rate");
        assert!(is_overflow(500, &["context_length_exceeded".to_owned()], ""));
    }
}
