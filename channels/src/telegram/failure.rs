//! Mapping of Telegram's errors. The codes are few and coarse, so that the wording decides.

use super::api::CallError;
use std::{error::Error, time::Duration};

/// Classifies an error that Telegram answered.
pub(super) fn failure(code: u16, what: &str, retry_after: Option<u64>, migrated: Option<i64>) -> CallError {
    if let Some(chat) = migrated {
        return CallError::Migrated(chat);
    }
    match code {
        401 | 404 => CallError::Token(what.to_owned()),
        409 => CallError::Conflict,
        // One second where it does not say how long.
        429 => CallError::Wait(Duration::from_secs(retry_after.unwrap_or(1).max(1))),
        400 => bad_request(what),
        401..500 => CallError::Refused(what.to_owned()),
        _ => CallError::Unknown(what.to_owned()),
    }
}

/// Classifies an answer that is not Telegram's: something on the way made it, or cut it.
pub(super) fn unreadable(status: u16) -> CallError {
    let what = format!("an answer that cannot be read (HTTP {status})");
    match status {
        413 => CallError::Refused("the request is too large".to_owned()),
        429 => CallError::Wait(Duration::from_secs(1)),
        _ => CallError::Unknown(what),
    }
}

fn bad_request(what: &str) -> CallError {
    let lower = what.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["message is not modified"]) {
        CallError::NotModified
    } else if says(&["message to edit not found", "message to delete not found", "message_id_invalid"]) {
        CallError::Gone
    } else if says(&["can't be edited", "no text in the message to edit"]) {
        CallError::Foreign
    } else if says(&["can't parse entities"]) {
        CallError::Markup(what.to_owned())
    } else {
        CallError::Refused(what.to_owned())
    }
}

/// Describes an error of the HTTP client without the URL, in which the token stands.
pub(super) fn unreachable(error: reqwest_teloxide::Error, token: &str) -> String {
    let error = error.without_url();
    let mut text = if error.is_timeout() { "no answer in time".to_owned() } else { error.to_string() };
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text.replace(token, "[token]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_its_meaning() {
        let refused = |what: &str| CallError::Refused(what.into());
        let cases = [
            (401, "Unauthorized", CallError::Token("Unauthorized".into())),
            (404, "Not Found", CallError::Token("Not Found".into())),
            (409, "Conflict: terminated by other getUpdates request", CallError::Conflict),
            (429, "Too Many Requests: retry after 7", CallError::Wait(Duration::from_secs(7))),
            (400, "Bad Request: message is not modified: specified new", CallError::NotModified),
            (400, "Bad Request: message to edit not found", CallError::Gone),
            (400, "Bad Request: MESSAGE_ID_INVALID", CallError::Gone),
            (400, "Bad Request: message can't be edited", CallError::Foreign),
            (400, "Bad Request: there is no text in the message to edit", CallError::Foreign),
            (
                400,
                "Bad Request: can't parse entities: x",
                CallError::Markup("Bad Request: can't parse entities: x".into()),
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
        assert_eq!(failure(400, "x", None, Some(-100)), CallError::Migrated(-100));
        assert_eq!(failure(429, "x", None, None), CallError::Wait(Duration::from_secs(1)));
    }
}
