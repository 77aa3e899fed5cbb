//! Facts from Discord's documentation: failures, limits, permissions, and how an operator gets a token. The code in the
//! body is more specific than the HTTP status.

use crate::{
    ChannelError,
    doctor::DoctorFacts,
    reply::Capabilities,
    split::{Limit, Unit},
    transport::{
        CallError::{self, Auth, Gone, Refused, Special, Unconnected, Unknown},
        DEFAULT_WAIT, ErrorCase, FailureTable,
        Meaning::{Act, Wait, WaitForAll},
        PlatformCase, RawResponse,
    },
};
use serde::Deserialize;
use std::time::Duration;

/// Why a call failed.
pub(super) type DiscordError = CallError<DiscordCase>;

/// Failures: <https://discord.com/developers/docs/topics/opcodes-and-status-codes#json>,
/// <https://discord.com/developers/docs/topics/rate-limits>.
const FAILURES: FailureTable<u64, DiscordCase> = FailureTable {
    codes: &[
        // The message, the archived thread, the interaction and its token.
        (&[10_008, 50_083, 10_015, 10_062, 50_027], Act(Gone)),
        // The bot cannot change the message.
        (&[50_005, 50_021], Act(Gone)),
        (&[40_060, 160_004], Act(|what| Special(DiscordCase::Done(what)))),
        // The second code covers every invalid form; it counts only if the message reference is the invalid field.
        (&[160_002, INVALID_FORM], Act(|what| Special(DiscordCase::NoReply(what)))),
        // Blocked by Cloudflare, in the API's error format.
        (&[40_333], Act(Unconnected)),
        (&[130_000], Wait(DEFAULT_WAIT)),
    ],
    statuses: &[
        (401..=401, Act(Auth)),
        (429..=429, Wait(DEFAULT_WAIT)),
        (408..=408, Act(Unknown)),
        (500..=u16::MAX, Act(Unknown)),
    ],
    otherwise: Act(Refused),
    // Cloudflare's response when an IP address makes too many calls, so every call has to wait.
    unreadable: &[
        (401..=401, Act(Auth)),
        (429..=429, WaitForAll(Duration::from_secs(10))),
        (
            403..=403,
            Act(|status| {
                Unconnected(format!(
                    "a proxy or firewall between pudu and Discord refused the call ({status})"
                ))
            }),
        ),
    ],
};

const INVALID_FORM: u64 = 50_035;

/// Maximum length of a message, in characters: <https://discord.com/developers/docs/resources/message#create-message>.
pub(super) const CONTENT: usize = 2000;

/// Files: <https://discord.com/developers/docs/reference#uploading-files>.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    platform: "Discord",
    // Leaves room for escapes, which count too; most texts have few.
    text: Limit { unit: Unit::Chars, max: CONTENT - 100, columns: 48 },
    // Boosted servers allow more.
    max_upload_bytes: 10 * 1024 * 1024,
    // The upload limit of the highest subscription tier.
    max_download_bytes: 500 * 1024 * 1024,
    edits: true,
    deletes: true,
    buttons: true,
    // By the nonce.
    // <https://docs.discord.com/developers/interactions/receiving-and-responding>
    form_fields: 5,
    idempotent_send: true,
};

pub(super) const DOCTOR: DoctorFacts = DoctorFacts {
    credentials: "token",
    credentials_help: "create a new token at https://discord.com/developers/applications, \"Bot\", \"Reset Token\", and set it \
                       as `bot_token`",
    url_key: "api_url",
    clock: "pudu miscalculates the age of commands and missed messages",
    // The invitation grants the permissions.
    grant_help: "",
};

/// Permissions that the bot needs, each with its bit: <https://discord.com/developers/docs/topics/permissions>.
pub(super) const PERMISSIONS: [(u32, &str); 7] = [
    (6, "Add Reactions"),
    (10, "View Channels"),
    (11, "Send Messages"),
    (15, "Attach Files"),
    (16, "Read Message History"),
    (35, "Create Public Threads"),
    (38, "Send Messages in Threads"),
];
/// Permission that includes all others.
pub(super) const ADMINISTRATOR: u64 = 1 << 3;

/// Failures specific to Discord.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiscordCase {
    /// The message cannot reference another one here; it can be sent without the reference.
    #[error("{0}")]
    NoReply(String),
    /// The action was already done.
    #[error("{0}")]
    Done(String),
}

impl ErrorCase for DiscordCase {
    fn general(self) -> CallError {
        match self {
            Self::NoReply(what) | Self::Done(what) => Refused(what),
        }
    }
}

impl PlatformCase for DiscordCase {}

/// Body of an error response.
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

/// Classifies an error response.
pub(super) fn failure(response: &RawResponse) -> DiscordError {
    failure_of(response.status, &response.body, response.wait())
}

/// Classifies an error response by its parts. `header` is the value of `Retry-After`.
fn failure_of(status: u16, body: &[u8], header: Option<Duration>) -> DiscordError {
    let Ok(error_body) = crate::lenient::from_bytes::<DiscordErrorBody>(body) else {
        return FAILURES.unreadable(status, header);
    };
    let wrong_reference = error_body.errors.get("message_reference").is_some();
    let is_code =
        |code: &u64| *code == error_body.code && (error_body.code != INVALID_FORM || wrong_reference);
    match FAILURES.error(is_code, status, describe(status, &error_body), Some(wait(&error_body, header))) {
        CallError::Wait(after) if error_body.global => CallError::WaitForAll(after),
        error => error,
    }
}

fn wait(error_body: &DiscordErrorBody, header: Option<Duration>) -> Duration {
    let requested = error_body.retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // Adds a margin: clocks differ, and a call that is too early counts.
    requested.or(header).unwrap_or(DEFAULT_WAIT) + Duration::from_millis(50)
}

/// Describes an error by its message and code, and an invalid form by its first invalid field.
fn describe(status: u16, error_body: &DiscordErrorBody) -> String {
    let words: String = error_body.message.chars().take(200).collect();
    let field = error_body.errors.as_object().and_then(|fields| fields.keys().next());
    let field = field.map(|field| format!(" at {field}")).unwrap_or_default();
    match error_body.code {
        0 => format!("{words}{field} (HTTP {status})"),
        code => format!("{words}{field} ({code})"),
    }
}

/// Meaning of a gateway close code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// The session continues over another connection.
    Resume,
    /// The session is over; a new one has to begin.
    NewSession,
    /// Permanent failure.
    Fatal(ChannelError),
}

/// Returns the meaning of the gateway's close code:
/// <https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway>.
pub(super) fn closed(code: Option<u16>) -> Closed {
    let config = |what: &str| Closed::Fatal(ChannelError::Config(what.to_owned()));
    match code {
        Some(4004) => {
            Closed::Fatal(ChannelError::Auth(format!("the gateway rejects it: {}", DOCTOR.credentials_help)))
        }
        Some(4014) => config(
            "the message content intent is off: turn it on at https://discord.com/developers/applications, \
             \"Bot\", \"Privileged Gateway Intents\", \"Message Content Intent\"",
        ),
        Some(4013) => config("Discord no longer supports an intent that pudu requests: update pudu"),
        Some(4012) => config("Discord no longer supports the gateway version that pudu uses: update pudu"),
        Some(4010 | 4011) => config("the bot is on too many servers for one connection"),
        Some(4003 | 4007 | 4009) => Closed::NewSession,
        _ => Closed::Resume,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{doctor::tests::check_facts, transport::check_table};
    use serde_json::json;

    #[test]
    fn each_row_of_the_tables_is_reached() {
        check_table(&FAILURES, |code, other| code == other);
        check_facts(&DOCTOR, &[]);
    }

    #[test]
    fn each_error_response_is_classified() {
        type DiscordErrorConstructor = fn(String) -> DiscordError;
        let cases: [(u16, u64, DiscordErrorConstructor); 16] = [
            (403, 50_005, Gone),
            (401, 0, Auth),
            (404, 10_008, Gone),
            (404, 10_015, Gone),
            (401, 50_027, Gone),
            (404, 10_062, Gone),
            (400, 50_083, Gone),
            (400, 40_060, |what| Special(DiscordCase::Done(what))),
            (400, 160_004, |what| Special(DiscordCase::Done(what))),
            (400, 160_002, |what| Special(DiscordCase::NoReply(what))),
            (404, 10_003, Refused),
            (403, 50_001, Refused),
            (403, 50_013, Refused),
            (403, 50_007, Refused),
            (413, 40_005, Refused),
            (503, 0, Unknown),
        ];
        for (status, code, meaning) in cases {
            let body = json!({"message": "words", "code": code}).to_string();
            let error_body =
                if code == 0 { format!("words (HTTP {status})") } else { format!("words ({code})") };
            assert_eq!(failure_of(status, body.as_bytes(), None), meaning(error_body), "{status} {code}");
        }
        let form = |field: &str| {
            let body =
                json!({"message": "Invalid Form Body", "code": 50035, "errors": {field: {}}}).to_string();
            failure_of(400, body.as_bytes(), None)
        };
        assert_eq!(form("content"), Refused("Invalid Form Body at content (50035)".into()));
        assert!(matches!(form("message_reference"), Special(DiscordCase::NoReply(_))));
    }

    #[test]
    fn requested_waits_are_respected() {
        let limited = |body: serde_json::Value| {
            failure_of(429, body.to_string().as_bytes(), Some(Duration::from_secs(9)))
        };
        let wait = |millis| CallError::Wait(Duration::from_millis(millis));
        let wait_for_all = |millis| CallError::WaitForAll(Duration::from_millis(millis));
        let rate_limited = |global| json!({"message": "You are being rate limited.", "retry_after": 1.337, "global": global});
        let old = json!({"message": "Maximum number of edits", "code": 30046, "retry_after": 60.0});
        assert_eq!(limited(rate_limited(false)), wait(1387));
        assert_eq!(limited(rate_limited(true)), wait_for_all(1387));
        assert_eq!(limited(old), wait(60_050));
        assert_eq!(limited(json!({"message": "x"})), wait(9050));
        let page = b"<html>error 1015</html>";
        assert_eq!(failure_of(429, page, Some(Duration::from_secs(30))), wait_for_all(30_000));
        assert_eq!(failure_of(429, page, None), wait_for_all(10_000));
        assert!(matches!(failure_of(403, page, None), Unconnected(_)));
        assert!(matches!(failure_of(502, page, None), Unknown(_)));
        assert!(!wait_for_all(1).may_be_done());
    }

    #[test]
    fn each_close_code_has_a_meaning() {
        for code in [None, Some(1000), Some(1001), Some(1006), Some(4000), Some(4001), Some(4002), Some(4008)]
        {
            assert_eq!(closed(code), Closed::Resume, "{code:?}");
        }
        for code in [4003, 4007, 4009] {
            assert_eq!(closed(Some(code)), Closed::NewSession, "{code}");
        }
        assert!(matches!(closed(Some(4004)), Closed::Fatal(ChannelError::Auth(_))));
        for code in [4010, 4011, 4012, 4013, 4014] {
            assert!(matches!(closed(Some(code)), Closed::Fatal(ChannelError::Config(_))), "{code}");
        }
        let Closed::Fatal(error) = closed(Some(4014)) else { panic!("the error is fatal") };
        assert!(error.to_string().contains("message content intent is off: turn it on"));
    }
}
