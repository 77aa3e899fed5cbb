//! Maps error responses of providers to errors.

mod overflow;
mod wait;

use pudu_base::ModelError;
use pudu_net::{json, reqwest, retry, scrub};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Maximum number of bytes read from an error response.
const MAX_READ_BYTES: usize = 64 * 1024;
/// Maximum length of a quoted error message, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Error codes for an account without credit. GLM and MiniMax use numbers.
const BROKE: [&str; 6] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "insufficient_balance",
    "billing_error",
    "1113",
    "1008",
];
/// Phrases in messages about an account without credit, if there is no code.
const BROKE_WORDS: [&str; 7] = [
    "insufficient balance",
    "credit balance is too low",
    "used all available credits",
    "doesn't have any credits",
    "余额不足",
    "欠费",
    "额度不足",
];
/// Codes of a content filter.
const FILTERED: [&str; 9] = [
    "content_filter",
    "content_policy_violation",
    "image_content_policy_violation",
    "invalid_prompt",
    "data_inspection_failed",
    "responsibleaipolicyviolation",
    "1301",
    "1026",
    "1027",
];
/// Phrases in messages of a content filter, if there is no code, or a code with another meaning.
const FILTERED_WORDS: [&str; 3] =
    ["content filtering policy", "your input was flagged", "prompt was flagged"];
/// Parts of error codes in errors without an HTTP status, and the corresponding status. MiniMax uses numbers.
const STATUSES: [(&str, u16); 27] = [
    ("rate_limit", 429),
    ("resource_exhausted", 429),
    ("too_many_requests", 429),
    ("1002", 429),
    ("1039", 429),
    ("overloaded", 529),
    ("unavailable", 503),
    ("insufficient_system_resource", 503),
    ("authentication", 401),
    ("invalid_api_key", 401),
    ("unauthenticated", 401),
    ("1004", 401),
    ("permission", 403),
    ("not_found", 404),
    ("model_not_found", 404),
    ("invalid_request", 400),
    ("invalid_argument", 400),
    ("badrequest", 400),
    ("bad_request", 400),
    ("2013", 400),
    ("request_too_large", 413),
    ("exceed_context", 400),
    ("invalid_", 400),
    ("unsupported_", 400),
    ("image_too", 400),
    ("image_parse", 400),
    ("image_file", 400),
];

/// Reads a response with an error status.
pub(crate) async fn read(response: reqwest::Response) -> ModelError {
    let status = response.status().as_u16();
    let wait = retry::after(response.headers(), SystemTime::now());
    let body = tokio::time::timeout(Duration::from_secs(10), head(response)).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let error = json::parse(body.as_bytes()).ok();
    classify(status, wait, error.as_ref(), &body)
}

/// Parses an error within a stream.
pub(crate) fn in_stream(error: &Value) -> ModelError {
    let inner = error.get("error").filter(|inner| inner.is_object()).unwrap_or(error);
    let number = ["code", "status", "status_code", "http_code"].into_iter().find_map(|name| {
        let value = inner.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok()).filter(|status| (400..600).contains(status))
    });
    let status = number.and_then(|status| u16::try_from(status).ok()).unwrap_or_else(|| status_of(inner));
    classify(status, None, Some(error), "")
}

/// Parses such an error from text, which may be JSON.
pub(crate) fn in_stream_text(text: &str) -> ModelError {
    match json::parse(text.as_bytes()) {
        Ok(Value::Array(errors)) if !errors.is_empty() => in_stream(&errors[0]),
        Ok(error) => in_stream(&error),
        // A gateway may write its error into a truncated event.
        Err(_) => {
            match text.lines().find_map(|line| json::parse(line.as_bytes()).ok().filter(Value::is_object)) {
                Some(error) => in_stream(&error),
                None => in_stream(&Value::String(text.to_owned())),
            }
        }
    }
}

/// Returns the error for an event that violates its protocol: the provider error in it or, if there is none, a garbled
/// reply.
pub(crate) fn unreadable(text: &str, error: &serde_json::Error) -> ModelError {
    let value = json::parse(text.as_bytes()).ok();
    let first = value.as_ref().and_then(|value| value.get(0)).or(value.as_ref());
    match first.and_then(|value| value.get("error")).filter(|error| !error.is_null()) {
        Some(error) => in_stream(error),
        None => ModelError::Garbled(error.to_string()),
    }
}

/// Returns the status for an error's codes.
fn status_of(error: &Value) -> u16 {
    let words = ["code", "type", "status", "status_code"].into_iter().filter_map(|name| error.get(name));
    let words: Vec<String> = words.map(word).collect();
    let known = STATUSES.iter().find(|(sign, _)| words.iter().any(|word| word.contains(sign)));
    known.map_or(500, |(_, status)| *status)
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_lowercase)
}

async fn head(mut response: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_READ_BYTES {
            break;
        }
    }
    body
}

fn classify(status: u16, retry_after: Option<Duration>, error: Option<&Value>, body: &str) -> ModelError {
    let error = error.map(|error| error.get(0).unwrap_or(error));
    let error = error.map(|error| error.get("error").filter(|inner| !inner.is_null()).unwrap_or(error));
    let field = |name: &str| error.and_then(|error| error.get(name)).filter(|value| !value.is_null());
    let codes: Vec<String> =
        ["code", "type", "status", "status_code"].into_iter().filter_map(field).map(word).collect();
    let is_one_of = |known: &[&str]| codes.iter().any(|code| known.contains(&code.as_str()));
    let message =
        ["message", "msg", "status_msg", "detail"].into_iter().find_map(|name| field(name)?.as_str());
    let said = message.or_else(|| error.and_then(Value::as_str)).unwrap_or(body);
    let lower = said.to_lowercase();
    let detail = detail(status, said);
    let retry_after = retry_after.or_else(|| retry_info(error?)).or_else(|| wait::named_wait(&lower));
    let retry_after = retry_after.map(|wait| wait.min(retry::MAX_RETRY_DELAY));
    match status {
        _ if is_one_of(&BROKE) || BROKE_WORDS.iter().any(|words| lower.contains(words)) => {
            ModelError::Quota(detail)
        }
        402 => ModelError::Quota(detail),
        _ if is_one_of(&FILTERED) || FILTERED_WORDS.iter().any(|words| lower.contains(words)) => {
            ModelError::Filtered(detail)
        }
        _ if overflow::is_overflow(status, &codes, &lower) => ModelError::TooLong(detail),
        // The model wrote a call that the provider could not parse: a retry may succeed.
        _ if is_one_of(&["tool_use_failed"]) => ModelError::Garbled(detail),
        401 | 403 => ModelError::Auth(detail),
        // Google's response to an invalid key.
        400 if lower.contains("api key not valid") => ModelError::Auth(detail),
        400 | 404 if is_one_of(&["model_not_found", "deploymentnotfound"]) => {
            ModelError::UnknownModel(detail)
        }
        // A shorter request helps, whichever limit was exceeded.
        413 => ModelError::TooLong(detail),
        // A missing API would not mention models.
        404 if lower.contains("model") => ModelError::UnknownModel(detail),
        404 | 405 | 410 => ModelError::NoApi(detail),
        // 529 is Anthropic's status for an overload.
        408 | 409 | 425 | 429 | 503 | 529 => ModelError::Busy { retry_after, limited: status == 429, detail },
        500.. => ModelError::Failed(detail),
        _ => ModelError::Rejected(detail),
    }
}

/// Parses Google's retry delay, which is in the details of the error instead of a header.
fn retry_info(error: &Value) -> Option<Duration> {
    let mut details = error.get("details")?.as_array()?.iter();
    let delay = details.find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Some(Duration::try_from_secs_f64(seconds).ok()?.min(retry::MAX_RETRY_DELAY))
}

/// Replaces account identifiers with a placeholder: organizations, projects, users, requests, and partly masked keys.
/// They do not help in a chat.
fn without_ids(said: &str) -> String {
    const KINDS: [&str; 12] =
        ["org-", "org_", "proj-", "proj_", "user-", "user_", "acct-", "acct_", "req-", "req_", "sk-", "key-"];
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_*.".contains(c);
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_id = KINDS.iter().any(|kind| word.to_ascii_lowercase().starts_with(kind))
            && word.contains(|c: char| c.is_ascii_digit() || c == '*');
        out.push_str(if is_id { "[id]" } else { word });
        let sign = after.chars().next().map_or(0, char::len_utf8);
        let (sign, after) = after.split_at(sign);
        out.push_str(sign);
        rest = after;
    }
    out
}

fn detail(status: u16, said: &str) -> String {
    let said: String = said.trim().chars().filter(|c| !c.is_control()).collect();
    let words: String = without_ids(&scrub::hide(&said)).chars().take(MAX_MESSAGE_CHARS).collect();
    // An HTML page is not a useful message.
    let words = if words.starts_with('<') { String::new() } else { words };
    if words.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {words}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_refusal_maps_to_its_error() {
        let check = |status: u16, body: Value, expect: ModelError| {
            assert_eq!(classify(status, None, Some(&body), ""), expect, "{status} {body}");
        };
        let says = |message: &str| json!({"error": {"message": message}});
        let busy = |detail: &str| ModelError::Busy {
            retry_after: None,
            limited: detail.starts_with("HTTP 429"),
            detail: detail.into(),
        };
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
        check(500, json!("oops"), ModelError::Failed("HTTP 500: oops".into()));
        check(400, says("no such argument"), ModelError::Rejected("HTTP 400: no such argument".into()));
        let unknown = |detail: &str| ModelError::UnknownModel(detail.into());
        check(404, json!({"error": "model not found"}), unknown("HTTP 404: model not found"));
        check(400, json!({"error": {"message": "x", "code": "model_not_found"}}), unknown("HTTP 400: x"));
        check(404, json!({"detail": "Not Found"}), ModelError::NoApi("HTTP 404: Not Found".into()));
        check(404, json!("<!doctype html><h1>no</h1>"), ModelError::NoApi("HTTP 404".into()));
        check(405, says("Method Not Allowed"), ModelError::NoApi("HTTP 405: Method Not Allowed".into()));
        let key =
            json!([{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}]);
        check(400, key, ModelError::Auth("HTTP 400: API key not valid.".into()));
        let filtered = json!({"error": {"message": "no", "code": "content_filter"}});
        check(400, filtered, ModelError::Filtered("HTTP 400: no".into()));
        let says_403 = says("Your chosen model requires moderation and your input was flagged");
        check(
            403,
            says_403,
            ModelError::Filtered(
                "HTTP 403: Your chosen model requires moderation and your input was flagged".into(),
            ),
        );
        let output = "Output blocked by content filtering policy";
        check(500, says(output), ModelError::Filtered(format!("HTTP 500: {output}")));
        let credits = "Your team has either used all available credits or reached its limit";
        check(403, says(credits), ModelError::Quota(format!("HTTP 403: {credits}")));
        check(404, json!({"error": {"message": "x", "code": "DeploymentNotFound"}}), unknown("HTTP 404: x"));
        let large = "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000";
        check(413, says(large), ModelError::TooLong(format!("HTTP 413: {large}")));
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
    fn googles_retry_delay_is_read_from_the_body() {
        let wait = |delay: &str| {
            let info = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
            let other = json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []});
            let body = json!({"error": {"code": 429, "message": "exhausted", "status": "RESOURCE_EXHAUSTED",
                "details": [other, info]}});
            match classify(429, None, Some(&body), "") {
                ModelError::Busy { retry_after, .. } => retry_after,
                error => panic!("{error}"),
            }
        };
        assert_eq!(wait("36s"), Some(Duration::from_secs(36)));
        assert_eq!(wait("0.25s"), Some(Duration::from_millis(250)));
        assert_eq!(wait("1e300s"), None);
        assert_eq!((wait("-1s"), wait("soon")), (None, None));
    }

    #[test]
    fn errors_within_a_stream_are_classified_like_responses() {
        let error = in_stream(&json!({"message": "overloaded", "code": 503}));
        let detail = "HTTP 503: overloaded".to_owned();
        assert_eq!(error, ModelError::Busy { retry_after: None, limited: false, detail });
        let error = in_stream(&json!({"message": "flagged", "code": "invalid_prompt"}));
        assert_eq!(error, ModelError::Filtered("HTTP 400: flagged".into()));
        let error = in_stream(&json!({"message": "no", "code": "invalid_image_format"}));
        assert_eq!(error, ModelError::Rejected("HTTP 400: no".into()));
        let error = in_stream(&json!({"message": "boom", "type": "server_error"}));
        assert_eq!(error, ModelError::Failed("HTTP 500: boom".into()));
    }
}
