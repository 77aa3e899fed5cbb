//! Mapping of Telegram's errors. The codes are few and coarse, so that the wording decides.

use super::api::TelegramCallError;
use std::{error::Error, time::Duration};

/// Classifies an error that Telegram answered.
pub(super) fn failure(
    code: u16,
    what: &str,
    retry_after: Option<u64>,
    migrated: Option<i64>,
) -> TelegramCallError {
    if let Some(chat) = migrated {
        return TelegramCallError::Migrated(chat);
    }
    match code {
        401 | 404 => TelegramCallError::Token(what.to_owned()),
        409 => TelegramCallError::Conflict,
        // One second where it does not say how long.
        429 => TelegramCallError::Wait(Duration::from_secs(retry_after.unwrap_or(1).max(1))),
        400 => bad_request(what),
        401..500 => TelegramCallError::Refused(what.to_owned()),
        _ => TelegramCallError::Unknown(what.to_owned()),
    }
}

/// Classifies an answer that is not Telegram's: something on the way made it, or cut it.
pub(super) fn unreadable(status: u16) -> TelegramCallError {
    let what = format!("an answer that cannot be read (HTTP {status})");
    match status {
        413 => TelegramCallError::Refused("the request is too large".to_owned()),
        429 => TelegramCallError::Wait(Duration::from_secs(1)),
        _ => TelegramCallError::Unknown(what),
    }
}

fn bad_request(what: &str) -> TelegramCallError {
    let lower = what.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["message is not modified"]) {
        TelegramCallError::NotModified
    } else if says(&["message to edit not found", "message to delete not found", "message_id_invalid"]) {
        TelegramCallError::Gone
    } else if says(&["can't be edited", "no text in the message to edit"]) {
        TelegramCallError::Foreign
    } else if says(&["can't parse entities"]) {
        TelegramCallError::Markup(what.to_owned())
    } else {
        TelegramCallError::Refused(what.to_owned())
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
        let refused = |what: &str| TelegramCallError::Refused(what.into());
        let cases = [
            (401, "Unauthorized", TelegramCallError::Token("Unauthorized".into())),
            (404, "Not Found", TelegramCallError::Token("Not Found".into())),
            (409, "Conflict: terminated by other getUpdates request", TelegramCallError::Conflict),
            (429, "Too Many Requests: retry after 7", TelegramCallError::Wait(Duration::from_secs(7))),
            (400, "Bad Request: message is not modified: specified new", TelegramCallError::NotModified),
            (400, "Bad Request: message to edit not found", TelegramCallError::Gone),
            (400, "Bad Request: MESSAGE_ID_INVALID", TelegramCallError::Gone),
            (400, "Bad Request: message can't be edited", TelegramCallError::Foreign),
            (400, "Bad Request: there is no text in the message to edit", TelegramCallError::Foreign),
            (
                400,
                "Bad Request: can't parse entities: x",
                TelegramCallError::Markup("Bad Request: can't parse entities: x".into()),
            ),
            (400, "Bad Request: chat not found", refused("Bad Request: chat not found")),
            (
                403,
                "Forbidden: bot was blocked by the user",
                refused("Forbidden: bot was blocked by the user"),
            ),
            (502, "Bad Gateway", TelegramCallError::Unknown("Bad Gateway".into())),
        ];
        for (code, what, meaning) in cases {
            assert_eq!(failure(code, what, Some(7), None), meaning);
        }
        assert_eq!(failure(400, "x", None, Some(-100)), TelegramCallError::Migrated(-100));
        assert_eq!(failure(429, "x", None, None), TelegramCallError::Wait(Duration::from_secs(1)));
    }
}
