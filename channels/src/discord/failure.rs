//! Mapping of Discord's errors: the status says little, the code of its own says more.

use crate::{
    ChannelError,
    transport::{CallError, DEFAULT_WAIT, ErrorCase, PlatformCase, RawResponse},
};
use serde::Deserialize;
use std::time::Duration;

/// Why a call failed.
pub(super) type DiscordError = CallError<DiscordCase>;

/// Failures that only Discord has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiscordCase {
    /// The message may not answer another here; it may be sent without a reference.
    #[error("{0}")]
    NoReply(String),
    /// It was done before.
    #[error("{0}")]
    Done(String),
}

impl ErrorCase for DiscordCase {
    fn general(self) -> CallError {
        match self {
            Self::NoReply(what) | Self::Done(what) => CallError::Refused(what),
        }
    }

    fn is_outage(&self) -> bool {
        false
    }
}

impl PlatformCase for DiscordCase {}

/// The body of an error.
#[derive(Debug, Default, Deserialize)]
pub(super) struct DiscordErrorBody {
    #[serde(default)]
    pub(super) code: u64,
    #[serde(default)]
    pub(super) message: String,
    retry_after: Option<f64>,
    #[serde(default)]
    global: bool,
    #[serde(default)]
    errors: serde_json::Value,
}

/// Classifies an answer that is not a success.
pub(super) fn failure(response: &RawResponse) -> DiscordError {
    failure_of(response.status, &response.body, response.wait())
}

/// The same of its parts. `header` is what `Retry-After` says.
fn failure_of(status: u16, body: &[u8], header: Option<Duration>) -> DiscordError {
    let Ok(told) = crate::lenient::from_bytes::<DiscordErrorBody>(body) else {
        return unreadable(status, header);
    };
    let what = describe(status, &told);
    match told.code {
        // The message, the thread that was closed, the interaction and its token; a message that is not ours to
        // change.
        10_008 | 50_083 | 10_015 | 10_062 | 50_027 | 50_005 | 50_021 => return CallError::Gone(what),
        40_060 | 160_004 => return CallError::Special(DiscordCase::Done(what)),
        160_002 => return CallError::Special(DiscordCase::NoReply(what)),
        50_035 if told.errors.get("message_reference").is_some() => {
            return CallError::Special(DiscordCase::NoReply(what));
        }
        // The wall before the API, in the API's words.
        40_333 => return CallError::Unconnected(what),
        130_000 => return CallError::Wait(wait(&told, header)),
        _ => {}
    }
    match status {
        401 => CallError::Auth(what),
        429 if told.global => CallError::WaitForAll(wait(&told, header)),
        429 => CallError::Wait(wait(&told, header)),
        408 | 500.. => CallError::Unknown(what),
        _ => CallError::Refused(what),
    }
}

/// Classifies an answer that is not the API's own: something on the way made it, or cut it. The wall before
/// the API answers so when an address makes too many calls; it is that of all.
fn unreadable(status: u16, header: Option<Duration>) -> DiscordError {
    match status {
        401 => CallError::Auth("HTTP 401".to_owned()),
        429 => CallError::WaitForAll(header.unwrap_or(DEFAULT_WAIT * 5)),
        403 => CallError::Unconnected("something on the way to Discord refuses (HTTP 403)".to_owned()),
        _ => CallError::of_status(status, header),
    }
}

fn wait(told: &DiscordErrorBody, header: Option<Duration>) -> Duration {
    let told = told.retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // A little more: clocks differ, and a call that comes too early counts.
    told.or(header).unwrap_or(DEFAULT_WAIT) + Duration::from_millis(50)
}

/// Describes an error: its words and its code, and of a form the first field that is wrong.
fn describe(status: u16, told: &DiscordErrorBody) -> String {
    let words: String = told.message.chars().take(200).collect();
    let field = told.errors.as_object().and_then(|fields| fields.keys().next());
    let field = field.map(|field| format!(" at {field}")).unwrap_or_default();
    match told.code {
        0 => format!("{words}{field} (HTTP {status})"),
        code => format!("{words}{field} ({code})"),
    }
}

/// Meaning of a code by which the gateway closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// The session continues over another connection.
    Resume,
    /// The session is over; another is begun.
    Anew,
    /// Trying again does not help.
    Fatal(ChannelError),
}

/// Reads the code by which the gateway closed.
pub(super) fn closed(code: Option<u16>) -> Closed {
    let config = |what: &str| Closed::Fatal(ChannelError::Config(what.to_owned()));
    match code {
        Some(4004) => Closed::Fatal(ChannelError::Auth(mend_token("the gateway does not take it"))),
        Some(4014) => config(
            "the message content intent is off: switch it on at https://discord.com/developers/applications, \
             \"Bot\", \"Privileged Gateway Intents\", \"Message Content Intent\"",
        ),
        Some(4013) => config("Discord does not know an intent that pudu asks for: update pudu"),
        Some(4012) => config("Discord has given up the gateway's version that pudu speaks: update pudu"),
        Some(4010 | 4011) => config("the bot is on too many servers for one connection"),
        Some(4003 | 4007 | 4009) => Closed::Anew,
        _ => Closed::Resume,
    }
}

/// Describes the fix of a refused token.
pub(super) fn mend_token(why: &str) -> String {
    format!(
        "{why}: make a new token at https://discord.com/developers/applications, \"Bot\", \"Reset Token\", \
         and put it into `bot_token`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_error_has_its_meaning() {
        type DiscordErrorConstructor = fn(String) -> DiscordError;
        let cases: [(u16, u64, DiscordErrorConstructor); 16] = [
            (403, 50_005, CallError::Gone),
            (401, 0, CallError::Auth),
            (404, 10_008, CallError::Gone),
            (404, 10_015, CallError::Gone),
            (401, 50_027, CallError::Gone),
            (404, 10_062, CallError::Gone),
            (400, 50_083, CallError::Gone),
            (400, 40_060, |what| CallError::Special(DiscordCase::Done(what))),
            (400, 160_004, |what| CallError::Special(DiscordCase::Done(what))),
            (400, 160_002, |what| CallError::Special(DiscordCase::NoReply(what))),
            (404, 10_003, CallError::Refused),
            (403, 50_001, CallError::Refused),
            (403, 50_013, CallError::Refused),
            (403, 50_007, CallError::Refused),
            (413, 40_005, CallError::Refused),
            (503, 0, CallError::Unknown),
        ];
        for (status, code, meaning) in cases {
            let body = json!({"message": "words", "code": code}).to_string();
            let told = if code == 0 { format!("words (HTTP {status})") } else { format!("words ({code})") };
            assert_eq!(failure_of(status, body.as_bytes(), None), meaning(told), "{status} {code}");
        }
        let form = |field: &str| {
            let body =
                json!({"message": "Invalid Form Body", "code": 50035, "errors": {field: {}}}).to_string();
            failure_of(400, body.as_bytes(), None)
        };
        assert_eq!(form("content"), CallError::Refused("Invalid Form Body at content (50035)".into()));
        assert!(matches!(form("message_reference"), CallError::Special(DiscordCase::NoReply(_))));
    }

    #[test]
    fn every_wish_to_wait_is_kept() {
        let limited = |body: serde_json::Value| {
            failure_of(429, body.to_string().as_bytes(), Some(Duration::from_secs(9)))
        };
        let wait = |millis| CallError::Wait(Duration::from_millis(millis));
        let wait_for_all = |millis| CallError::WaitForAll(Duration::from_millis(millis));
        let told = |global| json!({"message": "You are being rate limited.", "retry_after": 1.337, "global": global});
        let old = json!({"message": "Maximum number of edits", "code": 30046, "retry_after": 60.0});
        assert_eq!(limited(told(false)), wait(1387));
        assert_eq!(limited(told(true)), wait_for_all(1387));
        assert_eq!(limited(old), wait(60_050));
        assert_eq!(limited(json!({"message": "x"})), wait(9050));
        let page = b"<html>error 1015</html>";
        assert_eq!(failure_of(429, page, Some(Duration::from_secs(30))), wait_for_all(30_000));
        assert_eq!(failure_of(429, page, None), wait_for_all(10_000));
        assert!(matches!(failure_of(403, page, None), CallError::Unconnected(_)));
        assert!(matches!(failure_of(502, page, None), CallError::Unknown(_)));
        assert!(!wait_for_all(1).may_be_done());
    }

    #[test]
    fn the_gateway_says_why_it_closes() {
        for code in [None, Some(1000), Some(1001), Some(1006), Some(4000), Some(4001), Some(4002), Some(4008)]
        {
            assert_eq!(closed(code), Closed::Resume, "{code:?}");
        }
        for code in [4003, 4007, 4009] {
            assert_eq!(closed(Some(code)), Closed::Anew, "{code}");
        }
        assert!(matches!(closed(Some(4004)), Closed::Fatal(ChannelError::Auth(_))));
        for code in [4010, 4011, 4012, 4013, 4014] {
            assert!(matches!(closed(Some(code)), Closed::Fatal(ChannelError::Config(_))), "{code}");
        }
        let Closed::Fatal(error) = closed(Some(4014)) else { panic!("it is fatal") };
        assert!(error.to_string().contains("message content intent is off: switch it on"));
    }
}
