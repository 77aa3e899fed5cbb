//! What a provider's refusal means for the caller.

use pudu_base::ModelError;
use pudu_net::{reqwest, retry, scrub};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// As much of a refusal is read, in bytes.
const ENOUGH: usize = 64 * 1024;
/// As much of its words is passed on, in characters.
const WORDS: usize = 300;

/// Reads a response whose status is no success.
pub(super) async fn read(response: reqwest::Response) -> ModelError {
    let status = response.status().as_u16();
    let wait = retry::after(response.headers(), SystemTime::now());
    let body = tokio::time::timeout(Duration::from_secs(10), head(response)).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let error = serde_json::from_str::<Value>(&body).ok();
    classify(status, wait, error.as_ref(), &body)
}

/// Reads the error that some servers send inside a stream that began well.
pub(super) fn in_stream(error: &Value) -> ModelError {
    let status =
        error.get("code").and_then(Value::as_u64).or_else(|| error.get("status").and_then(Value::as_u64));
    let status = status.and_then(|status| u16::try_from(status).ok()).unwrap_or(500);
    classify(status, None, Some(error), "")
}

async fn head(mut response: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ENOUGH {
            break;
        }
    }
    body
}

fn classify(status: u16, retry_after: Option<Duration>, error: Option<&Value>, body: &str) -> ModelError {
    let error = error.map(|error| error.get("error").unwrap_or(error));
    let field = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    let code = field("code").or_else(|| field("type")).unwrap_or_default();
    let said = field("message").or_else(|| error.and_then(Value::as_str)).unwrap_or(body);
    let detail = detail(status, said);
    let broke = matches!(code, "insufficient_quota" | "billing_hard_limit_reached" | "insufficient_balance");
    match status {
        _ if broke => ModelError::Quota(detail),
        402 => ModelError::Quota(detail),
        401 | 403 => ModelError::Auth(detail),
        // 529 is how Anthropic says that it is overloaded.
        408 | 409 | 425 | 429 | 503 | 529 => ModelError::Busy { retry_after, detail },
        500.. => ModelError::Unreachable(detail),
        _ => ModelError::Rejected(detail),
    }
}

fn detail(status: u16, said: &str) -> String {
    let said: String = said.trim().chars().filter(|c| !c.is_control()).collect();
    let words = scrub::hide_and_cut(&said, WORDS);
    if words.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {words}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_refusal_is_named_by_what_can_be_done() {
        let check = |status: u16, body: Value, expect: ModelError| {
            assert_eq!(classify(status, None, Some(&body), ""), expect, "{status} {body}");
        };
        let says = |message: &str| json!({"error": {"message": message}});
        let busy = |detail: &str| ModelError::Busy { retry_after: None, detail: detail.into() };
        check(
            401,
            says("bad key sk-abcdefghijklmnopqrstuv"),
            ModelError::Auth("HTTP 401: bad key [secret]".into()),
        );
        check(429, says("slow down"), busy("HTTP 429: slow down"));
        check(
            429,
            json!({"error": {"message": "pay", "code": "insufficient_quota"}}),
            ModelError::Quota("HTTP 429: pay".into()),
        );
        check(402, json!({}), ModelError::Quota("HTTP 402".into()));
        check(529, says("overloaded"), busy("HTTP 529: overloaded"));
        check(500, json!("oops"), ModelError::Unreachable("HTTP 500: oops".into()));
        check(400, says("no such model"), ModelError::Rejected("HTTP 400: no such model".into()));
        check(
            404,
            json!({"error": "model not found"}),
            ModelError::Rejected("HTTP 404: model not found".into()),
        );
    }

    #[test]
    fn an_error_inside_a_stream_counts_like_one_before_it() {
        let error = in_stream(&json!({"message": "overloaded", "code": 503}));
        assert_eq!(error, ModelError::Busy { retry_after: None, detail: "HTTP 503: overloaded".into() });
        let error = in_stream(&json!({"message": "boom", "type": "server_error"}));
        assert_eq!(error, ModelError::Unreachable("HTTP 500: boom".into()));
    }
}
