//! Errors in each provider's format: names of statuses, and messages for requests that are too long or too frequent.

use super::{Refusal, Wire, reply::Cause, seal};
use serde_json::{Value, json};

/// Returns the body of a refusal.
pub(crate) fn body(wire: Wire, refusal: &Refusal) -> Value {
    let (status, message) = (refusal.status, refusal.message.as_str());
    match wire {
        Wire::Chat | Wire::Responses => openai(status, message, refusal.code),
        Wire::Messages => anthropic(status, message, fastrand::u64(..)),
        Wire::Gemini => {
            let mut body = gemini(status, message);
            if let Some(wait) = refusal.wait() {
                let retry = json!({
                    "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{}s", wait.as_secs_f64()),
                });
                body["error"]["details"] = json!([retry]);
            }
            body
        }
        Wire::Ollama => json!({"error": message}),
    }
}

/// Returns the provider's status, message and code for a cause.
pub(crate) fn cause(wire: Wire, cause: Cause) -> (u16, &'static str, Option<&'static str>) {
    match (cause, wire) {
        (Cause::RateLimit, Wire::Messages) => {
            (429, "This request would exceed your organization's rate limit of 50 requests per minute.", None)
        }
        (Cause::RateLimit, Wire::Gemini) => (429, "Resource has been exhausted (e.g. check quota).", None),
        (Cause::RateLimit, Wire::Ollama) => (429, "too many concurrent requests", None),
        (Cause::RateLimit, _) => {
            (429, "Rate limit reached for requests. Please try again in 20ms.", Some("rate_limit_exceeded"))
        }
        (Cause::Overloaded, Wire::Messages) => (529, "Overloaded", None),
        (Cause::Overloaded, Wire::Gemini) => (503, "The model is overloaded. Please try again later.", None),
        (Cause::Overloaded, Wire::Ollama) => {
            (503, "server busy, please try again.  maximum pending requests exceeded", None)
        }
        (Cause::Overloaded, _) => {
            (503, "The server is currently overloaded with other requests. Please try again later.", None)
        }
        (Cause::Overflow, Wire::Chat) => (
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130524 tokens. \
             Please reduce the length of the messages.",
            Some("context_length_exceeded"),
        ),
        (Cause::Overflow, Wire::Responses) => (
            400,
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            Some("context_length_exceeded"),
        ),
        (Cause::Overflow, Wire::Messages) => {
            (400, "prompt is too long: 205668 tokens > 200000 maximum", None)
        }
        (Cause::Overflow, Wire::Gemini) => (
            400,
            "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
            None,
        ),
        (Cause::Overflow, Wire::Ollama) => {
            (400, "prompt too long; exceeded max context length by 812 tokens", None)
        }
    }
}

/// Returns OpenAI's format.
pub(crate) fn openai(status: u16, message: &str, code: Option<&str>) -> Value {
    let (kind, usual) = match status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        429 => ("rate_limit_error", json!("rate_limit_exceeded")),
        400..500 => ("invalid_request_error", Value::Null),
        _ => ("server_error", Value::Null),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code.map_or(usual, Value::from)}})
}

/// Returns Anthropic's format.
pub(crate) fn anthropic(status: u16, message: &str, n: u64) -> Value {
    let kind = match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        504 => "timeout_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    let id = format!("req_01{}", seal::letters(&n.to_string(), 22));
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": id})
}

/// Returns Google's format.
pub(crate) fn gemini(status: u16, message: &str) -> Value {
    let name = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        504 => "DEADLINE_EXCEEDED",
        400..499 => "INVALID_ARGUMENT",
        500 => "INTERNAL",
        _ => "UNAVAILABLE",
    };
    json!({"error": {"code": status, "message": message, "status": name}})
}
