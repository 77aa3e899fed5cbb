//! Mapping of the platform's errors. Many come as HTTP 200, rate limits come as 400, so that the code in the
//! body decides and the status only where there is none.

use crate::{
    http::{self, Unread},
    reply::CallError,
};
use std::time::Duration;

/// The pause where the platform does not say how long.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum delay that the platform may ask for.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FeishuError {
    /// The platform's code; 0 where it gave none.
    pub(super) code: i64,
    /// The error's meaning.
    pub(super) error: CallError,
}

impl From<FeishuError> for CallError {
    fn from(failure: FeishuError) -> Self {
        failure.error
    }
}

impl From<FeishuError> for crate::SendError {
    fn from(failure: FeishuError) -> Self {
        failure.error.into()
    }
}

impl From<CallError> for FeishuError {
    fn from(error: CallError) -> Self {
        Self { code: 0, error }
    }
}

impl FeishuError {
    /// Returns whether the app as a whole exceeds its rate limit, not only in one chat.
    pub(super) fn is_everybodys(&self) -> bool {
        self.code == 99_991_400
    }

    /// Returns whether the token is not good any more.
    pub(super) fn is_token(&self) -> bool {
        TOKEN.contains(&self.code)
    }

    /// Returns whether the app lacks the scope that the call needs.
    pub(super) fn is_scope(&self) -> bool {
        self.code == 99_991_672
    }

    /// Returns whether the app's id or secret is wrong.
    pub(super) fn is_credentials(&self) -> bool {
        matches!(self.code, 10_003 | 10_014 | 10_012)
    }

    /// Returns whether the message that is answered is gone, or takes no answers.
    pub(super) fn is_unanswerable(&self) -> bool {
        matches!(self.code, 230_011 | 230_019 | 230_071)
    }

    /// Returns whether a card's stream is closed, by the platform or by us.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.code, 200_850 | 300_309)
    }

    /// Returns whether an operation's number was not above the last one.
    pub(super) fn is_sequence(&self) -> bool {
        self.code == 300_317
    }

    /// Returns whether the platform rejects the content: another form of it may pass.
    pub(super) fn is_content(&self) -> bool {
        matches!(self.code, 230_001 | 230_025 | 230_054 | 230_055 | 230_099 | 200_621 | 11_310)
            || (300_301..=300_316).contains(&self.code)
    }
}

const TOKEN: [i64; 6] = [99_991_661, 99_991_663, 99_991_664, 99_991_665, 99_991_668, 99_991_671];

/// Classifies an answer of the platform whose code is not 0.
pub(super) fn failure(status: u16, code: i64, msg: &str, reset: Option<u64>) -> FeishuError {
    let told = || format!("{msg} (code {code})");
    let pause = reset.map_or(PAUSE, |seconds| Duration::from_secs(seconds).clamp(PAUSE, MAX_RETRY_DELAY));
    let error = match code {
        // TRAP: as 400 and not as 429.
        99_991_400 => CallError::Wait(pause),
        // A chat's, the message service's, a person who uses the card.
        230_020 | 11_232 | 11_233 | 200_810 => CallError::Wait(PAUSE),
        _ if TOKEN.contains(&code) => CallError::Unconnected(told()),
        // 230049: it is being sent still, under the key that it was sent with.
        1 | 1500 | 2200 | 230_049 | 1_000_040_343 => CallError::Unknown(told()),
        230_011 | 230_031 | 200_740 | 200_750 => CallError::Gone,
        _ if status == 429 => CallError::Wait(pause),
        _ if status >= 500 => CallError::Unknown(told()),
        _ => CallError::Refused(told()),
    };
    FeishuError { code, error }
}

/// Classifies an answer that is not the platform's: something on the way made it, or cut it.
pub(super) fn unreadable(status: u16, reset: Option<u64>) -> FeishuError {
    let what = format!("an answer that cannot be read (HTTP {status})");
    let error = match status {
        413 => CallError::Refused("the request is too large".to_owned()),
        429 => failure(429, 99_991_400, "", reset).error,
        404 => CallError::Refused(format!("{what}: is `domain` right?")),
        _ => CallError::Unknown(what),
    };
    error.into()
}

/// Classifies an error of the HTTP client, described without the URL.
pub(super) fn unreachable(error: pudu_net::reqwest::Error) -> FeishuError {
    let connect = error.is_connect();
    let what = describe(error);
    if connect { CallError::Unconnected(what).into() } else { CallError::Unknown(what).into() }
}

/// Classifies an answer that could not be read: what was asked for is perhaps done.
pub(super) fn unread(error: Unread) -> FeishuError {
    match error {
        Unread::Lost(error) => unreachable(error),
        Unread::TooLarge => CallError::Unknown(Unread::TooLarge.to_string()).into(),
    }
}

/// Describes an error of the HTTP client without the URL.
pub(super) fn describe(error: pudu_net::reqwest::Error) -> String {
    if error.is_timeout() { "no answer in time".to_owned() } else { http::words(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_meaning() {
        let wait = |seconds| CallError::Wait(Duration::from_secs(seconds));
        let refused = |code: i64| CallError::Refused(format!("m (code {code})"));
        let unknown = |code: i64| CallError::Unknown(format!("m (code {code})"));
        let cases = [
            // TRAP: rate limits that come as 400 and as 200.
            (400, 99_991_400, wait(7)),
            (429, 99_991_400, wait(7)),
            (200, 230_020, wait(1)),
            (400, 230_020, wait(1)),
            (400, 11_232, wait(1)),
            (400, 11_233, wait(1)),
            (400, 200_810, wait(1)),
            (400, 99_991_663, CallError::Unconnected("m (code 99991663)".into())),
            (200, 99_991_668, CallError::Unconnected("m (code 99991668)".into())),
            (200, 2200, unknown(2200)),
            (200, 1500, unknown(1500)),
            // TRAP: refused, and there all the same: only the key tells that it is the same message.
            (400, 230_049, unknown(230_049)),
            (500, 4711, unknown(4711)),
            (400, 230_011, CallError::Gone),
            (400, 230_031, CallError::Gone),
            (200, 200_740, CallError::Gone),
            (400, 200_750, CallError::Gone),
            // TRAP: HTTP 200 that is a failure.
            (200, 230_002, refused(230_002)),
            (400, 230_006, refused(230_006)),
            (400, 230_013, refused(230_013)),
            (400, 230_018, refused(230_018)),
            (400, 230_025, refused(230_025)),
            (400, 230_099, refused(230_099)),
            (400, 200_860, refused(200_860)),
            (403, 99_991_672, refused(99_991_672)),
        ];
        for (status, code, meaning) in cases {
            assert_eq!(failure(status, code, "m", Some(7)).error, meaning, "{status} {code}");
        }
        assert_eq!(failure(400, 99_991_400, "m", None).error, wait(1));
        assert_eq!(failure(400, 99_991_400, "m", Some(u64::MAX)).error, wait(3600));
        assert_eq!(unreadable(429, Some(3)).error, wait(3));
        assert!(unreadable(502, None).error.may_be_done());
    }
}
