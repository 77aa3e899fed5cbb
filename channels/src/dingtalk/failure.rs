//! Mapping of DingTalk's errors: statuses, codes in words, numbers, and pages without either.
//!
//! Two traps: HTTP 403 is mostly "too fast" and only sometimes "not allowed", and HTTP 200 is a failure where
//! a number in it is not 0.

use crate::{
    http::{self, Unread},
    reply::CallError,
};
use pudu_net::reqwest;
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DingError {
    /// Not before then. Nothing was done.
    #[error("DingTalk asks to wait {0:?}")]
    Wait(Duration),
    /// This one person gets too many at the moment. Nothing was done.
    #[error("DingTalk holds back messages to this person for {0:?}")]
    Flooded(Duration),
    /// The access token is not good any more. Nothing was done.
    #[error("the access token is not valid: {0}")]
    Token(String),
    /// The app's credentials are not good.
    #[error("the credentials are not valid: {0}")]
    Credentials(String),
    /// The app lacks the permission, or the month's calls are used up. Nothing was done.
    #[error("{0}")]
    Forbidden(String),
    /// Trying again does not help. Nothing was done.
    #[error("{0}")]
    Refused(String),
    /// `unknownError`: of a card's stream it mostly means that the template has no such variable.
    #[error("{0}")]
    Strange(String),
    /// No connection came about. Nothing was done.
    #[error("{0}")]
    Unconnected(String),
    /// It may be done or not.
    #[error("{0}")]
    Unknown(String),
}

impl DingError {
    /// Maps the error of a call that nobody sees the effect of: an unknown outcome counts as not done.
    pub(super) fn unseen(self) -> Self {
        match self {
            Self::Strange(what) | Self::Unknown(what) => Self::Unconnected(what),
            other => other,
        }
    }
}

/// Reads an answer: its content, or what went wrong.
pub(super) fn read(status: u16, retry_after: Option<u64>, body: &[u8]) -> Result<Value, DingError> {
    let content: Option<Value> = serde_json::from_slice(body).ok();
    let Some(content) = content.filter(Value::is_object) else { return Err(unreadable(status, retry_after)) };
    if content["punish"] == "deny" {
        return Err(DingError::Wait(BANNED));
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
fn coded(status: u16, retry_after: Option<u64>, code: &str, message: &str) -> DingError {
    let what = format!("{message} ({code}, HTTP {status})");
    let has = |part: &str| code.contains(part);
    if has("QpsLimit") || has("Throttling") || status == 429 {
        return DingError::Wait(retry_after.map_or(TOO_FAST, Duration::from_secs).max(TOO_FAST));
    }
    match status {
        _ if has("invalidClientIdOrSecret") || has("authFailed") => DingError::Credentials(what),
        401 => DingError::Token(what),
        403 => DingError::Forbidden(what),
        400..500 => DingError::Refused(what),
        500 if code == "unknownError" => DingError::Strange(what),
        503 if has("ServiceUnavailable") => {
            DingError::Wait(retry_after.map_or(2 * TOO_FAST, Duration::from_secs))
        }
        _ => DingError::Unknown(what),
    }
}

/// An error with a number, under HTTP 200.
fn numbered(number: i64, message: &str) -> DingError {
    let what = format!("{message} ({number})");
    match number {
        90_002 | 90_018 => DingError::Wait(TOO_FAST),
        130_101 => DingError::Wait(FLOODED),
        40_001 | 40_014 | 42_001 => DingError::Token(what),
        90_020 => DingError::Forbidden(what),
        -1 => DingError::Unknown(what),
        _ => DingError::Refused(what),
    }
}

/// An answer that is not JSON: something on the way made it, or DingTalk's own gate.
fn unreadable(status: u16, retry_after: Option<u64>) -> DingError {
    let what = format!("an answer that cannot be read (HTTP {status})");
    match status {
        403 => DingError::Wait(BANNED),
        413 => DingError::Refused("the request is too large".to_owned()),
        429 => DingError::Wait(retry_after.map_or(TOO_FAST, Duration::from_secs).max(TOO_FAST)),
        _ => DingError::Unknown(what),
    }
}

/// Describes an error of the HTTP client without the URL, in which tokens stand.
pub(super) fn unreachable(error: reqwest::Error) -> DingError {
    let unconnected = error.is_connect();
    let text = http::words(error);
    if unconnected { DingError::Unconnected(text) } else { DingError::Unknown(text) }
}

/// Classifies an answer that could not be read: what was asked for is perhaps done.
pub(super) fn unread(error: Unread) -> DingError {
    match error {
        Unread::Lost(error) => unreachable(error),
        Unread::TooLarge => DingError::Unknown(Unread::TooLarge.to_string()),
    }
}

impl From<DingError> for CallError {
    fn from(failure: DingError) -> Self {
        match failure {
            DingError::Wait(wait) | DingError::Flooded(wait) => Self::Wait(wait),
            DingError::Refused(what) | DingError::Forbidden(what) => Self::Refused(what),
            DingError::Token(_) | DingError::Credentials(_) | DingError::Unconnected(_) => {
                Self::Unconnected(failure.to_string())
            }
            DingError::Strange(what) | DingError::Unknown(what) => Self::Unknown(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seconds(seconds: u64) -> DingError {
        DingError::Wait(Duration::from_secs(seconds))
    }

    #[test]
    fn every_answer_has_its_meaning() {
        let api = |status: u16, code: &str| {
            let body = json!({"requestid": "r", "code": code, "message": "m"}).to_string();
            let what = format!("m ({code}, HTTP {status})");
            (read(status, None, body.as_bytes()), what)
        };
        let check = |status, code: &str, meaning: fn(String) -> DingError| {
            let (found, what) = api(status, code);
            assert_eq!(found, Err(meaning(what)), "{status} {code}");
        };
        check(401, "InvalidAuthentication", DingError::Token);
        check(400, "invalidClientIdOrSecret", DingError::Credentials);
        check(401, "authFailed", DingError::Credentials);
        check(403, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi", |_| seconds(1));
        check(403, "Forbidden.AccessDenied.QpsLimitForApi", |_| seconds(1));
        check(403, "Forbidden.AccessDenied.ApiCountLimitForOrg", DingError::Forbidden);
        check(403, "Forbidden.AccessDenied.AccessTokenPermissionDenied", DingError::Forbidden);
        check(400, "invalidParameter.msgParam", DingError::Refused);
        check(404, "InvalidAction.NotFound", DingError::Refused);
        check(500, "unknownError", DingError::Strange);
        check(500, "InternalError", DingError::Unknown);
        check(503, "ServiceUnavailable", |_| seconds(2));
        check(429, "x", |_| seconds(1));
    }

    #[test]
    fn http_200_is_a_failure_where_its_number_is_not_0() {
        let old =
            |number: Value| read(200, None, json!({"errcode": number, "errmsg": "m"}).to_string().as_bytes());
        let check =
            |number: i64, meaning: DingError| assert_eq!(old(number.into()), Err(meaning), "{number}");
        assert!(old(0.into()).is_ok() && old("0".into()).is_ok());
        check(90_018, seconds(1));
        check(90_002, seconds(1));
        check(130_101, seconds(60));
        check(40_014, DingError::Token("m (40014)".into()));
        check(90_020, DingError::Forbidden("m (90020)".into()));
        check(300_001, DingError::Refused("m (300001)".into()));
        check(-1, DingError::Unknown("m (-1)".into()));
        assert_eq!(old("90018".into()), Err(seconds(1)));
    }

    #[test]
    fn an_answer_without_any_code_has_a_meaning_too() {
        let ban = json!({"status": 1111, "wait": 5, "punish": "deny"}).to_string();
        let check = |status, body: &str, meaning: DingError| {
            assert_eq!(read(status, None, body.as_bytes()), Err(meaning), "{status} {body}");
        };
        check(200, &ban, seconds(300));
        check(403, &ban, seconds(300));
        check(403, "<html>403</html>", seconds(300));
        check(502, "<html>502</html>", DingError::Unknown("an answer that cannot be read (HTTP 502)".into()));
        check(200, "{\"ok\":tru", DingError::Unknown("an answer that cannot be read (HTTP 200)".into()));
        check(200, "[]", DingError::Unknown("an answer that cannot be read (HTTP 200)".into()));
        check(413, "", DingError::Refused("the request is too large".into()));
        assert_eq!(read(429, Some(7), b""), Err(seconds(7)));
    }
}
