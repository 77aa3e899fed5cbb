//! Mapping of Discord's errors: the status says little, the code of its own says more.

use crate::{
    ChannelError, SendError,
    http::{self, Unread},
    reply::CallError,
};
use serde::Deserialize;
use std::time::Duration;

/// Why a call failed, named by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiscordApiError {
    /// Too many calls: of this kind, or of all. Nothing was done.
    #[error("Discord asks to wait {0:?}")]
    Wait(Duration, Reach),
    /// The token is not valid. Nothing was done.
    #[error("Discord refused the token: {0}")]
    Auth(String),
    /// The message, or the right to answer an interaction, is not there any more.
    #[error("{0}")]
    Gone(String),
    /// The message may not answer another here; it may stand alone.
    #[error("{0}")]
    NoReply(String),
    /// It was done before.
    #[error("{0}")]
    Done(String),
    /// Trying again does not help.
    #[error("Discord says {0}")]
    Refused(String),
    /// No connection came about. Nothing was done.
    #[error("{0}")]
    Unconnected(String),
    /// The call may have been done or not.
    #[error("{0}")]
    Unknown(String),
}

impl DiscordApiError {
    /// Returns whether Discord, or the way to it, does not work now.
    pub(super) fn is_outage(&self) -> bool {
        matches!(self, Self::Unconnected(_) | Self::Unknown(_))
    }
}

/// Scope of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Calls like this one.
    Kind,
    /// All calls of the bot.
    All,
}

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

/// The wait where Discord does not say how long.
const WAIT: Duration = Duration::from_secs(2);

/// Classifies an answer that is not a success. `header` is what `Retry-After` says.
pub(super) fn failure(status: u16, body: &[u8], header: Option<Duration>) -> DiscordApiError {
    let Ok(told) = serde_json::from_slice::<DiscordErrorBody>(body) else {
        return unreadable(status, header);
    };
    let what = describe(status, &told);
    match told.code {
        // The message, the thread that was closed, the interaction and its token; a message that is not ours to
        // change.
        10_008 | 50_083 | 10_015 | 10_062 | 50_027 | 50_005 | 50_021 => return DiscordApiError::Gone(what),
        40_060 | 160_004 => return DiscordApiError::Done(what),
        160_002 => return DiscordApiError::NoReply(what),
        50_035 if told.errors.get("message_reference").is_some() => return DiscordApiError::NoReply(what),
        // The wall before the API, in the API's words.
        40_333 => return DiscordApiError::Unconnected(what),
        130_000 => return DiscordApiError::Wait(wait(&told, header), Reach::Kind),
        _ => {}
    }
    match status {
        401 => DiscordApiError::Auth(what),
        429 => DiscordApiError::Wait(wait(&told, header), if told.global { Reach::All } else { Reach::Kind }),
        408 | 500.. => DiscordApiError::Unknown(what),
        _ => DiscordApiError::Refused(what),
    }
}

/// Classifies an answer that is not the API's own: something on the way made it, or cut it. The wall before
/// the API answers so when an address makes too many calls; it is that of all.
pub(super) fn unreadable(status: u16, header: Option<Duration>) -> DiscordApiError {
    match status {
        401 => DiscordApiError::Auth("HTTP 401".to_owned()),
        413 => DiscordApiError::Refused("the request is too large".to_owned()),
        429 => DiscordApiError::Wait(header.unwrap_or(WAIT * 5), Reach::All),
        403 => DiscordApiError::Unconnected("something on the way to Discord refuses (HTTP 403)".to_owned()),
        _ => DiscordApiError::Unknown(format!("an answer that cannot be read (HTTP {status})")),
    }
}

fn wait(told: &DiscordErrorBody, header: Option<Duration>) -> Duration {
    let told = told.retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // A little more: clocks differ, and a call that comes too early counts.
    told.or(header).unwrap_or(WAIT) + Duration::from_millis(50)
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

/// Describes an error of the HTTP client without the URL, in which the token of an interaction may stand.
pub(super) fn unreachable(error: pudu_net::reqwest::Error) -> DiscordApiError {
    let before = error.is_connect() || error.is_builder();
    let text = http::words(error);
    if before { DiscordApiError::Unconnected(text) } else { DiscordApiError::Unknown(text) }
}

/// Classifies an answer that could not be read: what was asked for is perhaps done.
pub(super) fn unread(error: Unread) -> DiscordApiError {
    match error {
        Unread::Lost(error) => unreachable(error),
        Unread::TooLarge => DiscordApiError::Unknown(Unread::TooLarge.to_string()),
    }
}

impl From<DiscordApiError> for CallError {
    fn from(error: DiscordApiError) -> Self {
        let what = error.to_string();
        match error {
            DiscordApiError::Wait(after, _) => Self::Wait(after),
            DiscordApiError::Auth(_) | DiscordApiError::Unconnected(_) => Self::Unconnected(what),
            DiscordApiError::Gone(_) => Self::Gone,
            DiscordApiError::Unknown(_) => Self::Unknown(what),
            DiscordApiError::NoReply(_) | DiscordApiError::Done(_) | DiscordApiError::Refused(_) => {
                Self::Refused(what)
            }
        }
    }
}

impl From<DiscordApiError> for SendError {
    fn from(error: DiscordApiError) -> Self {
        CallError::from(error).into()
    }
}

/// Meaning of a code by which the gateway closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// The session goes on over another connection.
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

/// Words what a refused token needs.
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
        type DiscordErrorConstructor = fn(String) -> DiscordApiError;
        let cases: [(u16, u64, DiscordErrorConstructor); 16] = [
            (403, 50_005, DiscordApiError::Gone),
            (401, 0, DiscordApiError::Auth),
            (404, 10_008, DiscordApiError::Gone),
            (404, 10_015, DiscordApiError::Gone),
            (401, 50_027, DiscordApiError::Gone),
            (404, 10_062, DiscordApiError::Gone),
            (400, 50_083, DiscordApiError::Gone),
            (400, 40_060, DiscordApiError::Done),
            (400, 160_004, DiscordApiError::Done),
            (400, 160_002, DiscordApiError::NoReply),
            (404, 10_003, DiscordApiError::Refused),
            (403, 50_001, DiscordApiError::Refused),
            (403, 50_013, DiscordApiError::Refused),
            (403, 50_007, DiscordApiError::Refused),
            (413, 40_005, DiscordApiError::Refused),
            (503, 0, DiscordApiError::Unknown),
        ];
        for (status, code, meaning) in cases {
            let body = json!({"message": "words", "code": code}).to_string();
            let told = if code == 0 { format!("words (HTTP {status})") } else { format!("words ({code})") };
            assert_eq!(failure(status, body.as_bytes(), None), meaning(told), "{status} {code}");
        }
        let form = |field: &str| {
            let body =
                json!({"message": "Invalid Form Body", "code": 50035, "errors": {field: {}}}).to_string();
            failure(400, body.as_bytes(), None)
        };
        assert_eq!(form("content"), DiscordApiError::Refused("Invalid Form Body at content (50035)".into()));
        assert!(matches!(form("message_reference"), DiscordApiError::NoReply(_)));
    }

    #[test]
    fn every_wish_to_wait_is_kept() {
        let limited =
            |body: serde_json::Value| failure(429, body.to_string().as_bytes(), Some(Duration::from_secs(9)));
        let wait = |millis, reach| DiscordApiError::Wait(Duration::from_millis(millis), reach);
        let told = |global| json!({"message": "You are being rate limited.", "retry_after": 1.337, "global": global});
        let old = json!({"message": "Maximum number of edits", "code": 30046, "retry_after": 60.0});
        assert_eq!(limited(told(false)), wait(1387, Reach::Kind));
        assert_eq!(limited(told(true)), wait(1387, Reach::All));
        assert_eq!(limited(old), wait(60_050, Reach::Kind));
        assert_eq!(limited(json!({"message": "x"})), wait(9050, Reach::Kind));
        let page = b"<html>error 1015</html>";
        assert_eq!(failure(429, page, Some(Duration::from_secs(30))), wait(30_000, Reach::All));
        assert_eq!(failure(429, page, None), wait(10_000, Reach::All));
        assert!(matches!(failure(403, page, None), DiscordApiError::Unconnected(_)));
        assert!(matches!(failure(502, page, None), DiscordApiError::Unknown(_)));
        assert!(!CallError::from(wait(1, Reach::All)).may_be_done());
        assert!(CallError::from(DiscordApiError::Unknown("x".into())).may_be_done());
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
