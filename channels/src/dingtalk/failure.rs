//! Mapping of DingTalk's errors: statuses, codes in words, numbers, and pages without either.
//!
//! Two traps: HTTP 403 is mostly "too fast" and only sometimes "not allowed", and HTTP 200 is a failure where
//! a number in it is not 0.

use crate::transport::{CallError, ErrorCase, PlatformCase, RawResponse};
use serde_json::Value;
use std::time::Duration;

/// Too many calls in a second: the documents say to wait one.
const TOO_FAST: Duration = Duration::from_secs(1);
/// An address that asked far too much is banned for five minutes.
const BANNED: Duration = Duration::from_secs(5 * 60);
/// Delay after a session's address got too many messages. DingTalk asks for about ten minutes; it is tried
/// earlier.
const FLOODED: Duration = Duration::from_secs(60);

/// Why a call failed.
pub(super) type DingTalkError = CallError<DingTalkCase>;

/// Failures that only DingTalk has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DingTalkCase {
    /// This one person gets too many at the moment. Nothing was done.
    #[error("DingTalk holds back messages to this person for {0:?}")]
    Flooded(Duration),
    /// The app lacks the permission, or the month's calls are used up. Nothing was done.
    #[error("{0}")]
    Forbidden(String),
    /// `unknownError`: of a card's stream it mostly means that the template has no such variable.
    #[error("{0}")]
    Strange(String),
}

impl ErrorCase for DingTalkCase {
    fn general(self) -> CallError {
        let what = self.to_string();
        match self {
            Self::Flooded(wait) => CallError::Wait(wait),
            Self::Forbidden(_) => CallError::Refused(what),
            Self::Strange(_) => CallError::Unknown(what),
        }
    }

    fn is_outage(&self) -> bool {
        matches!(self, Self::Strange(_))
    }
}

impl PlatformCase for DingTalkCase {}

/// Returns whether DingTalk does not take a card, for whatever reason: ordinary messages may pass.
pub(super) fn rules_out_cards(error: &DingTalkError) -> bool {
    let special = |case: &DingTalkCase| matches!(case, DingTalkCase::Forbidden(_) | DingTalkCase::Strange(_));
    matches!(error, CallError::Refused(_)) || matches!(error, CallError::Special(case) if special(case))
}

/// Reads an answer: its content, or the failure.
pub(super) fn read(response: &RawResponse) -> Result<Value, DingTalkError> {
    read_parts(response.status, response.wait(), &response.body)
}

fn read_parts(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Result<Value, DingTalkError> {
    let content: Option<Value> = crate::lenient::from_bytes(body).ok();
    let Some(content) = content.filter(Value::is_object) else { return Err(unreadable(status, retry_after)) };
    if content["punish"] == "deny" {
        return Err(CallError::Wait(BANNED));
    }
    match (status, number(&content)) {
        (200..300, None | Some(0)) => Ok(content),
        (200..300, Some(number)) => Err(numbered(number, &text(&content, "errmsg"))),
        _ => Err(coded(status, retry_after, &text(&content, "code"), &text(&content, "message"))),
    }
}

/// The older host's number of an error. Some of its answers say it as text.
fn number(content: &Value) -> Option<i64> {
    let number = &content["errcode"];
    number.as_i64().or_else(|| number.as_str()?.parse().ok())
}

fn text(content: &Value, name: &str) -> String {
    let text = content[name].as_str().unwrap_or_default();
    text.chars().take(300).collect()
}

/// An error with a code in words.
fn coded(status: u16, retry_after: Option<Duration>, code: &str, message: &str) -> DingTalkError {
    let what = format!("{message} ({code}, HTTP {status})");
    let has = |part: &str| code.contains(part);
    if has("QpsLimit") || has("Throttling") || status == 429 {
        return CallError::Wait(retry_after.unwrap_or(TOO_FAST).max(TOO_FAST));
    }
    match status {
        _ if has("invalidClientIdOrSecret") || has("authFailed") => CallError::Auth(what),
        401 => CallError::StaleToken(what),
        403 => CallError::Special(DingTalkCase::Forbidden(what)),
        400..500 => CallError::Refused(what),
        500 if code == "unknownError" => CallError::Special(DingTalkCase::Strange(what)),
        503 if has("ServiceUnavailable") => CallError::Wait(retry_after.unwrap_or(2 * TOO_FAST)),
        _ => CallError::Unknown(what),
    }
}

/// An error with a number, under HTTP 200.
fn numbered(number: i64, message: &str) -> DingTalkError {
    let what = format!("{message} ({number})");
    match number {
        90_002 | 90_018 => CallError::Wait(TOO_FAST),
        130_101 => CallError::Wait(FLOODED),
        40_001 | 40_014 | 42_001 => CallError::StaleToken(what),
        90_020 => CallError::Special(DingTalkCase::Forbidden(what)),
        -1 => CallError::Unknown(what),
        _ => CallError::Refused(what),
    }
}

/// An answer that is not JSON: something on the way made it, or DingTalk's own gate.
fn unreadable(status: u16, retry_after: Option<Duration>) -> DingTalkError {
    match status {
        403 => CallError::Wait(BANNED),
        _ => CallError::of_status(status, Some(retry_after.unwrap_or(TOO_FAST).max(TOO_FAST))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seconds(seconds: u64) -> DingTalkError {
        CallError::Wait(Duration::from_secs(seconds))
    }

    #[test]
    fn every_answer_has_its_meaning() {
        let api = |status: u16, code: &str| {
            let body = json!({"requestid": "r", "code": code, "message": "m"}).to_string();
            let what = format!("m ({code}, HTTP {status})");
            (read_parts(status, None, body.as_bytes()), what)
        };
        let check = |status, code: &str, meaning: fn(String) -> DingTalkError| {
            let (found, what) = api(status, code);
            assert_eq!(found, Err(meaning(what)), "{status} {code}");
        };
        check(401, "InvalidAuthentication", CallError::StaleToken);
        check(400, "invalidClientIdOrSecret", CallError::Auth);
        check(401, "authFailed", CallError::Auth);
        check(403, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi", |_| seconds(1));
        check(403, "Forbidden.AccessDenied.QpsLimitForApi", |_| seconds(1));
        check(403, "Forbidden.AccessDenied.ApiCountLimitForOrg", |what| {
            CallError::Special(DingTalkCase::Forbidden(what))
        });
        check(403, "Forbidden.AccessDenied.AccessTokenPermissionDenied", |what| {
            CallError::Special(DingTalkCase::Forbidden(what))
        });
        check(400, "invalidParameter.msgParam", CallError::Refused);
        check(404, "InvalidAction.NotFound", CallError::Refused);
        check(500, "unknownError", |what| CallError::Special(DingTalkCase::Strange(what)));
        check(500, "InternalError", CallError::Unknown);
        check(503, "ServiceUnavailable", |_| seconds(2));
        check(429, "x", |_| seconds(1));
    }

    #[test]
    fn http_200_is_a_failure_where_its_number_is_not_0() {
        let old = |number: Value| {
            read_parts(200, None, json!({"errcode": number, "errmsg": "m"}).to_string().as_bytes())
        };
        let check =
            |number: i64, meaning: DingTalkError| assert_eq!(old(number.into()), Err(meaning), "{number}");
        assert!(old(0.into()).is_ok() && old("0".into()).is_ok());
        check(90_018, seconds(1));
        check(90_002, seconds(1));
        check(130_101, seconds(60));
        check(40_014, CallError::StaleToken("m (40014)".into()));
        check(90_020, CallError::Special(DingTalkCase::Forbidden("m (90020)".into())));
        check(300_001, CallError::Refused("m (300001)".into()));
        check(-1, CallError::Unknown("m (-1)".into()));
        assert_eq!(old("90018".into()), Err(seconds(1)));
    }

    #[test]
    fn an_answer_without_any_code_has_a_meaning_too() {
        let ban = json!({"status": 1111, "wait": 5, "punish": "deny"}).to_string();
        let check = |status, body: &str, meaning: DingTalkError| {
            assert_eq!(read_parts(status, None, body.as_bytes()), Err(meaning), "{status} {body}");
        };
        check(200, &ban, seconds(300));
        check(403, &ban, seconds(300));
        check(403, "<html>403</html>", seconds(300));
        check(502, "<html>502</html>", CallError::Unknown("an answer that cannot be read (HTTP 502)".into()));
        check(200, "{\"ok\":tru", CallError::Unknown("an answer that cannot be read (HTTP 200)".into()));
        check(200, "[]", CallError::Unknown("an answer that cannot be read (HTTP 200)".into()));
        check(413, "", CallError::Refused("the request is too large".into()));
        assert_eq!(read_parts(429, Some(Duration::from_secs(7)), b""), Err(seconds(7)));
    }
}
