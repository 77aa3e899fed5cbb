//! Mapping of Telegram's errors. The codes are few and coarse, so that the wording decides.

use crate::transport::{CallError, ErrorCase, PlatformCase};
use std::time::Duration;

/// Why a call failed.
pub(super) type TelegramError = CallError<TelegramCase>;

/// Failures that only Telegram has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TelegramCase {
    /// The group has a new id. Nothing was done.
    #[error("the group has become {0}")]
    Migrated(i64),
    /// The message says that already.
    #[error("the message is not modified")]
    NotModified,
    /// The message is there, but is not one of ours with a text.
    #[error("the message can't be edited")]
    Foreign,
    /// The markup was not understood. Nothing was done.
    #[error("the markup was not understood: {0}")]
    Markup(String),
    /// Another program polls, or a webhook is set.
    #[error("another program polls with this token, or a webhook is set")]
    Conflict,
}

impl ErrorCase for TelegramCase {
    fn general(self) -> CallError {
        match self {
            Self::Foreign => CallError::Gone(self.to_string()),
            _ => CallError::Refused(self.to_string()),
        }
    }

    fn is_outage(&self) -> bool {
        false
    }
}

impl PlatformCase for TelegramCase {}

/// Classifies an error that Telegram answered.
pub(super) fn failure(
    code: u16,
    what: &str,
    retry_after: Option<u64>,
    migrated: Option<i64>,
) -> TelegramError {
    if let Some(chat) = migrated {
        return CallError::Special(TelegramCase::Migrated(chat));
    }
    match code {
        401 | 404 => CallError::Auth(what.to_owned()),
        409 => CallError::Special(TelegramCase::Conflict),
        // One second where it does not say how long.
        429 => CallError::Wait(Duration::from_secs(retry_after.unwrap_or(1).max(1))),
        400 => bad_request(what),
        401..500 => CallError::Refused(what.to_owned()),
        _ => CallError::Unknown(what.to_owned()),
    }
}

fn bad_request(what: &str) -> TelegramError {
    let lower = what.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["message is not modified"]) {
        CallError::Special(TelegramCase::NotModified)
    } else if says(&["message to edit not found", "message to delete not found", "message_id_invalid"]) {
        CallError::Gone(what.to_owned())
    } else if says(&["can't be edited", "no text in the message to edit"]) {
        CallError::Special(TelegramCase::Foreign)
    } else if says(&["can't parse entities"]) {
        CallError::Special(TelegramCase::Markup(what.to_owned()))
    } else {
        CallError::Refused(what.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_its_meaning() {
        let refused = |what: &str| CallError::Refused(what.into());
        let gone = |what: &str| CallError::Gone(what.into());
        let special = CallError::Special;
        let cases = [
            (401, "Unauthorized", CallError::Auth("Unauthorized".into())),
            (404, "Not Found", CallError::Auth("Not Found".into())),
            (409, "Conflict: terminated by other getUpdates request", special(TelegramCase::Conflict)),
            (429, "Too Many Requests: retry after 7", CallError::Wait(Duration::from_secs(7))),
            (400, "Bad Request: message is not modified: specified new", special(TelegramCase::NotModified)),
            (400, "Bad Request: message to edit not found", gone("Bad Request: message to edit not found")),
            (400, "Bad Request: MESSAGE_ID_INVALID", gone("Bad Request: MESSAGE_ID_INVALID")),
            (400, "Bad Request: message can't be edited", special(TelegramCase::Foreign)),
            (400, "Bad Request: there is no text in the message to edit", special(TelegramCase::Foreign)),
            (
                400,
                "Bad Request: can't parse entities: x",
                special(TelegramCase::Markup("Bad Request: can't parse entities: x".into())),
            ),
            (400, "Bad Request: chat not found", refused("Bad Request: chat not found")),
            (
                403,
                "Forbidden: bot was blocked by the user",
                refused("Forbidden: bot was blocked by the user"),
            ),
            (502, "Bad Gateway", CallError::Unknown("Bad Gateway".into())),
        ];
        for (code, what, meaning) in cases {
            assert_eq!(failure(code, what, Some(7), None), meaning);
        }
        assert_eq!(failure(400, "x", None, Some(-100)), special(TelegramCase::Migrated(-100)));
        assert_eq!(failure(429, "x", None, None), CallError::Wait(Duration::from_secs(1)));
    }
}
