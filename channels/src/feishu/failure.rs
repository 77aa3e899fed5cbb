//! Mapping of the platform's errors. Many come as HTTP 200, rate limits come as 400, so that the code in the
//! body decides and the status only where there is none.

use crate::transport::{CallError, ErrorCase, PlatformCase};
use std::time::Duration;

/// The pause where the platform does not say how long.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);
/// Maximum delay that the platform may ask for.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);

/// Why a call failed.
pub(super) type FeishuError = CallError<FeishuCase>;

/// Failures that only Feishu has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FeishuCase {
    /// A refusal with its code.
    #[error("{what}")]
    Refusal {
        code: i64,
        what: String,
        /// Whether the message is not there, or cannot change any more.
        gone: bool,
    },
}

impl ErrorCase for FeishuCase {
    fn general(self) -> CallError {
        match self {
            Self::Refusal { what, gone: true, .. } => CallError::Gone(what),
            Self::Refusal { what, gone: false, .. } => CallError::Refused(what),
        }
    }

    fn is_outage(&self) -> bool {
        false
    }
}

impl PlatformCase for FeishuCase {}

/// Questions about a refusal, by its code.
impl FeishuError {
    /// Returns the code of a refusal.
    pub(super) fn code(&self) -> Option<i64> {
        match self {
            Self::Special(FeishuCase::Refusal { code, .. }) => Some(*code),
            _ => None,
        }
    }

    /// Returns whether the object does not exist, or the call is refused: a wait or an outage is neither.
    pub(super) fn is_final(&self) -> bool {
        self.code().is_some() || matches!(self, Self::Refused(_) | Self::Gone(_))
    }

    /// Returns whether the app lacks the scope that the call needs.
    pub(super) fn is_scope(&self) -> bool {
        self.code() == Some(99_991_672)
    }

    /// Returns whether the message that is answered is gone, or takes no answers.
    pub(super) fn is_unanswerable(&self) -> bool {
        matches!(self.code(), Some(230_011 | 230_019 | 230_071))
    }

    /// Returns whether a card's stream is closed, by the platform or by us.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.code(), Some(200_850 | 300_309))
    }

    /// Returns whether an operation's number was not above the last one.
    pub(super) fn is_sequence(&self) -> bool {
        self.code() == Some(300_317)
    }

    /// Returns whether a simpler form of the same may pass: nothing was done, and the chat is not the cause.
    pub(super) fn may_pass_otherwise(&self) -> bool {
        let content = [230_001, 230_025, 230_054, 230_055, 230_099, 200_621, 11_310];
        let card = [200_740, 200_750, 200_860];
        let is = |code: i64| {
            content.contains(&code) || card.contains(&code) || (300_301..=300_316).contains(&code)
        };
        self.is_scope() || self.code().is_some_and(is)
    }
}

/// Codes of tokens that are not good any more, and of wrong credentials.
const TOKEN: [i64; 6] = [99_991_661, 99_991_663, 99_991_664, 99_991_665, 99_991_668, 99_991_671];
const CREDENTIALS: [i64; 3] = [10_003, 10_014, 10_012];

/// Classifies an answer of the platform whose code is not 0.
pub(super) fn failure(status: u16, code: i64, msg: &str, reset: Option<u64>) -> FeishuError {
    let what = format!("{msg} (code {code})");
    let refusal = |gone| CallError::Special(FeishuCase::Refusal { code, what: what.clone(), gone });
    match code {
        // TRAP: as 400 and not as 429.
        99_991_400 => CallError::WaitForAll(wait(reset)),
        // A chat's, the message service's, a person who uses the card.
        230_020 | 11_232 | 11_233 | 200_810 => CallError::Wait(DEFAULT_WAIT),
        _ if TOKEN.contains(&code) => CallError::StaleToken(what),
        _ if CREDENTIALS.contains(&code) => CallError::Auth(what),
        // 230049: it is being sent still, under the key that it was sent with.
        1 | 1500 | 2200 | 230_049 | 1_000_040_343 => CallError::Unknown(what),
        230_011 | 230_031 | 200_740 | 200_750 => refusal(true),
        _ if status == 429 => CallError::Wait(wait(reset)),
        _ if status >= 500 => CallError::Unknown(what),
        _ => refusal(false),
    }
}

/// Classifies an answer that is not the platform's: something on the way made it, or cut it.
pub(super) fn unreadable(status: u16, reset: Option<u64>) -> FeishuError {
    match status {
        404 => {
            CallError::Refused(format!("an answer that cannot be read (HTTP {status}): is `domain` right?"))
        }
        429 => CallError::WaitForAll(wait(reset)),
        _ => CallError::of_status(status, None),
    }
}

fn wait(reset: Option<u64>) -> Duration {
    reset.map_or(DEFAULT_WAIT, |seconds| Duration::from_secs(seconds).clamp(DEFAULT_WAIT, MAX_RETRY_DELAY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::NoCase;

    #[test]
    fn every_code_has_its_meaning() {
        let wait = |seconds| CallError::<NoCase>::Wait(Duration::from_secs(seconds));
        let refused = |code: i64| CallError::Refused(format!("m (code {code})"));
        let gone = |code: i64| CallError::Gone(format!("m (code {code})"));
        let unknown = |code: i64| CallError::Unknown(format!("m (code {code})"));
        let cases = [
            // TRAP: rate limits that come as 400 and as 200.
            (400, 99_991_400, CallError::WaitForAll(Duration::from_secs(7))),
            (429, 99_991_400, CallError::WaitForAll(Duration::from_secs(7))),
            (200, 230_020, wait(1)),
            (400, 230_020, wait(1)),
            (400, 11_232, wait(1)),
            (400, 11_233, wait(1)),
            (400, 200_810, wait(1)),
            (400, 99_991_663, CallError::StaleToken("m (code 99991663)".into())),
            (200, 99_991_668, CallError::StaleToken("m (code 99991668)".into())),
            (200, 10_003, CallError::Auth("m (code 10003)".into())),
            (200, 10_014, CallError::Auth("m (code 10014)".into())),
            (200, 2200, unknown(2200)),
            (200, 1500, unknown(1500)),
            // TRAP: refused, and there all the same: only the key identifies it as the same message.
            (400, 230_049, unknown(230_049)),
            (500, 4711, unknown(4711)),
            (400, 230_011, gone(230_011)),
            (400, 230_031, gone(230_031)),
            (200, 200_740, gone(200_740)),
            (400, 200_750, gone(200_750)),
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
            let found: CallError = failure(status, code, "m", Some(7)).into();
            assert_eq!(found, meaning, "{status} {code}");
        }
        let for_all = |seconds| CallError::WaitForAll(Duration::from_secs(seconds));
        assert_eq!(failure(400, 99_991_400, "m", None), for_all(1));
        assert_eq!(failure(400, 99_991_400, "m", Some(u64::MAX)), for_all(3600));
        assert_eq!(unreadable(429, Some(3)), for_all(3));
        assert!(unreadable(502, None).may_be_done());
    }
}
