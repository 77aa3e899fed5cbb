//! Facts from Telegram's documentation: failures, limits, and how an operator gets a token. Error numbers are few and
//! coarse, so the wording decides.

use crate::{
    doctor::DoctorFacts,
    reply::Capabilities,
    split::{Limit, Unit},
    transport::{
        CallError::{self, Auth, Gone, Refused, Special, Unknown},
        ErrorCase, FailureTable,
        Meaning::{Act, Wait},
        PlatformCase,
    },
};
use std::time::Duration;

/// Why a call failed.
pub(super) type TelegramError = CallError<TelegramCase>;

/// Failures: <https://core.telegram.org/bots/api#making-requests>. The codes are parts of the description of an error
/// 400, in lower case; the statuses are the error numbers.
const FAILURES: FailureTable<&str, TelegramCase> = FailureTable {
    codes: &[
        (&["message is not modified"], Act(|_| Special(TelegramCase::NotModified))),
        (&["message to edit not found", "message to delete not found", "message_id_invalid"], Act(Gone)),
        (&["can't be edited", "no text in the message to edit"], Act(|_| Special(TelegramCase::Foreign))),
        (&["can't parse entities"], Act(|what| Special(TelegramCase::Markup(what)))),
    ],
    statuses: &[
        (401..=401, Act(Auth)),
        (404..=404, Act(Auth)),
        (409..=409, Act(|_| Special(TelegramCase::Conflict))),
        (429..=429, Wait(Duration::from_secs(1))),
        (400..=499, Act(Refused)),
    ],
    otherwise: Act(Unknown),
    unreadable: &[],
};

/// Text: <https://core.telegram.org/bots/api#sendmessage>. Files: <https://core.telegram.org/bots/api#sending-files> and
/// <https://core.telegram.org/bots/api#getfile>.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    platform: "Telegram",
    text: Limit { unit: Unit::Utf16, max: 4096, columns: 40 },
    max_upload_bytes: 50_000_000,
    max_download_bytes: 20_000_000,
    edits: true,
    deletes: true,
    buttons: true,
    form_fields: 0,
    idempotent_send: false,
};

/// Maximum size of a file sent as a picture, in bytes: <https://core.telegram.org/bots/api#sending-files>.
pub(super) const MAX_PHOTO_BYTES: u64 = 10_000_000;

/// <https://core.telegram.org/bots/features#botfather>
pub(super) const DOCTOR: DoctorFacts = DoctorFacts {
    credentials: "token",
    credentials_help: "copy the token from @BotFather into `bot_token` again",
    url_key: "api_url",
    // Responses contain no time, and a bot needs no permissions.
    clock: "",
    grant_help: "",
};

/// Failures specific to Telegram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TelegramCase {
    /// The group has a new id. Nothing was done.
    #[error("the group became the supergroup {0}")]
    Migrated(i64),
    /// The message already has this content.
    #[error("the message is not modified")]
    NotModified,
    /// The message exists, but is not a text message of the bot.
    #[error("the message cannot be edited")]
    Foreign,
    /// Telegram could not parse the markup. Nothing was done.
    #[error("Telegram rejected the markup: {0}")]
    Markup(String),
    /// Another program polls, or a webhook is set.
    #[error("another program polls with this token, or a webhook is set")]
    Conflict,
}

impl ErrorCase for TelegramCase {
    fn general(self) -> CallError {
        match self {
            Self::Foreign => Gone(self.to_string()),
            _ => Refused(self.to_string()),
        }
    }
}

impl PlatformCase for TelegramCase {}

/// Classifies an error response.
pub(super) fn failure(
    code: u16,
    what: &str,
    retry_after: Option<u64>,
    migrated: Option<i64>,
) -> TelegramError {
    if let Some(chat) = migrated {
        return Special(TelegramCase::Migrated(chat));
    }
    let lower = what.to_ascii_lowercase();
    let wait = retry_after.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    FAILURES.error(|words| code == 400 && lower.contains(words), code, what.to_owned(), wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::check_table;

    #[test]
    fn each_row_of_the_table_is_reached() {
        check_table(&FAILURES, |words, what| what.contains(words));
    }

    #[test]
    fn each_error_is_classified() {
        let refused = |what: &str| Refused(what.into());
        let gone = |what: &str| Gone(what.into());
        let special = Special;
        let cases = [
            (401, "Unauthorized", Auth("Unauthorized".into())),
            (404, "Not Found", Auth("Not Found".into())),
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
            (502, "Bad Gateway", Unknown("Bad Gateway".into())),
        ];
        for (code, what, meaning) in cases {
            assert_eq!(failure(code, what, Some(7), None), meaning);
        }
        assert_eq!(failure(400, "x", None, Some(-100)), special(TelegramCase::Migrated(-100)));
        assert_eq!(failure(429, "x", None, None), CallError::Wait(Duration::from_secs(1)));
    }
}
