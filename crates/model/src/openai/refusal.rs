//! Mapping of a provider's refusals to errors.

use pudu_base::ModelError;
use pudu_net::{reqwest, retry, scrub};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// As much of a refusal is read, in bytes.
const ENOUGH: usize = 64 * 1024;
/// As much of its words is passed on, in characters.
const WORDS: usize = 300;

/// Codes that say that an account has no credit.
const BROKE: [&str; 3] = ["insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"];
/// Codes that say that a filter refused what was said.
const FILTERED: [&str; 3] = ["content_filter", "content_policy_violation", "data_inspection_failed"];

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
    match status {
        _ if BROKE.contains(&code) => ModelError::Quota(detail),
        402 => ModelError::Quota(detail),
        _ if FILTERED.contains(&code) => ModelError::Filtered(detail),
        401 | 403 => ModelError::Auth(detail),
        400 | 404 if code == "model_not_found" => ModelError::UnknownModel(detail),
        // Only an API that is there knows of models.
        404 if said.to_lowercase().contains("model") => ModelError::UnknownModel(detail),
        404 | 405 | 410 => ModelError::NoApi(detail),
        400 | 413 | 422 if is_too_long(code, said) => ModelError::TooLong(detail),
        // 529 is how Anthropic says that it is overloaded.
        408 | 409 | 425 | 429 | 503 | 529 => ModelError::Busy { retry_after, detail },
        500.. => ModelError::Unreachable(detail),
        _ => ModelError::Rejected(detail),
    }
}

/// Whether a refusal is about the length of a request. Each provider has its own words for that.
fn is_too_long(code: &str, said: &str) -> bool {
    const SIGNS: [&str; 8] = [
        "context length",
        "context window",
        "context size",
        "maximum context",
        "prompt is too long",
        "input is too long",
        "too many tokens",
        "exceeds the maximum number of tokens",
    ];
    let said = said.to_lowercase();
    matches!(code, "context_length_exceeded" | "string_above_max_length")
        || SIGNS.iter().any(|sign| said.contains(sign))
}

/// Puts a word in the place of what names somebody's account: organisations, projects, requests, keys that the
/// provider showed in part. The chat has nothing to do with those.
fn without_ids(said: &str) -> String {
    const KINDS: [&str; 12] =
        ["org-", "org_", "proj-", "proj_", "user-", "user_", "acct-", "acct_", "req-", "req_", "sk-", "key-"];
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_*.".contains(c);
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_id = KINDS.iter().any(|kind| word.to_ascii_lowercase().starts_with(kind))
            && word.contains(|c: char| c.is_ascii_digit() || c == '*');
        out.push_str(if is_id { "[id]" } else { word });
        let sign = behind.chars().next().map_or(0, char::len_utf8);
        let (sign, behind) = behind.split_at(sign);
        out.push_str(sign);
        rest = behind;
    }
    out
}

fn detail(status: u16, said: &str) -> String {
    let said: String = said.trim().chars().filter(|c| !c.is_control()).collect();
    let words: String = without_ids(&scrub::hide(&said)).chars().take(WORDS).collect();
    // A page of a website says nothing to a person.
    let words = if words.starts_with('<') { String::new() } else { words };
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
        check(400, says("no such argument"), ModelError::Rejected("HTTP 400: no such argument".into()));
        let unknown = |detail: &str| ModelError::UnknownModel(detail.into());
        check(404, json!({"error": "model not found"}), unknown("HTTP 404: model not found"));
        check(400, json!({"error": {"message": "x", "code": "model_not_found"}}), unknown("HTTP 400: x"));
        check(404, json!({"detail": "Not Found"}), ModelError::NoApi("HTTP 404".into()));
        check(404, json!("<!doctype html><h1>no</h1>"), ModelError::NoApi("HTTP 404".into()));
        check(405, says("Method Not Allowed"), ModelError::NoApi("HTTP 405: Method Not Allowed".into()));
        let filtered = json!({"error": {"message": "no", "code": "content_filter"}});
        check(400, filtered, ModelError::Filtered("HTTP 400: no".into()));
        let long = "This model's maximum context length is 8 tokens";
        check(400, says(long), ModelError::TooLong(format!("HTTP 400: {long}")));
        let over = json!({"error": {"message": "x", "code": "context_length_exceeded"}});
        check(400, over, ModelError::TooLong("HTTP 400: x".into()));
        let ids =
            "in organization org-AbC123def (req_0f), project proj_9: key sk-ab***yz; the user-friendly way";
        let expect = "in organization [id] ([id]), project [id]: key [id]; the user-friendly way";
        check(429, says(ids), busy(&format!("HTTP 429: {expect}")));
    }

    #[test]
    fn an_error_inside_a_stream_counts_like_one_before_it() {
        let error = in_stream(&json!({"message": "overloaded", "code": 503}));
        assert_eq!(error, ModelError::Busy { retry_after: None, detail: "HTTP 503: overloaded".into() });
        let error = in_stream(&json!({"message": "boom", "type": "server_error"}));
        assert_eq!(error, ModelError::Unreachable("HTTP 500: boom".into()));
    }
}
