//! Facts from Slack's documentation: failures, limits, scopes, and how an operator gets tokens. Most errors are HTTP
//! 200; the error names are the API's own.

use crate::{
    ChannelError,
    doctor::{AppScope, DoctorFacts, needed, useful},
    reply::Capabilities,
    split::{Limit, Unit},
    transport::{
        CallError::{self, Auth, Gone, Refused, Special, Unconnected, Unknown},
        ErrorCase, FailureTable,
        Meaning::{Act, Wait},
        PlatformCase,
    },
};
use SlackCase::{Content, NoStream, Scope, Stream};
use std::time::Duration;

/// Why a call failed.
pub(super) type SlackError = CallError<SlackCase>;

/// Failures: <https://docs.slack.dev/reference/methods/chat.postMessage>,
/// <https://docs.slack.dev/reference/methods/chat.appendStream>, <https://docs.slack.dev/apis/web-api/rate-limits>.
const FAILURES: FailureTable<&str, SlackCase> = FailureTable {
    codes: &[
        (&["ratelimited", "rate_limited", "message_limit_exceeded"], Wait(Duration::from_secs(2))),
        (&["not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired"], Act(Auth)),
        (&["user_removed_from_team", "team_disabled", "org_login_required", "ekm_access_denied"], Act(Auth)),
        (&["not_allowed_token_type", "two_factor_setup_required", "app_not_found"], Act(Auth)),
        (&["missing_scope"], Act(|scope| Special(Scope(scope)))),
        (&["message_not_found", "cant_update_message", "cant_delete_message"], Act(Gone)),
        (&["edit_window_closed", "block_mismatch"], Act(Gone)),
        (&["message_not_in_streaming_state", "streaming_state_conflict"], Act(|what| Special(Stream(what)))),
        (&["message_not_owned_by_app", "streaming_mode_mismatch"], Act(|what| Special(Stream(what)))),
        (NO_METHOD, Act(|what| Special(NoStream(what)))),
        (&["channel_type_not_supported", "missing_recipient_user_id"], Act(|what| Special(NoStream(what)))),
        (&["missing_recipient_team_id", "user_not_found"], Act(|what| Special(NoStream(what)))),
        (&["feature_disabled", "not_allowed"], Act(|what| Special(NoStream(what)))),
        (&["msg_too_long", "msg_blocks_too_long", "no_text"], Act(|what| Special(Content(what)))),
        (&["invalid_blocks", "invalid_blocks_format"], Act(|what| Special(Content(what)))),
        (&["markdown_text_conflict", "invalid_chunks"], Act(|what| Special(Content(what)))),
        (&["internal_error", "fatal_error", "request_timeout", "service_unavailable"], Act(Unknown)),
        (&["team_added_to_org", "accesslimited"], Act(Unconnected)),
    ],
    statuses: &[],
    otherwise: Act(Refused),
    unreadable: &[],
};

/// Errors of methods that Slack does not support anywhere.
const NO_METHOD: &[&str] = &["unknown_method", "method_deprecated", "deprecated_endpoint"];

/// Files: <https://docs.slack.dev/messaging/working-with-files>. Slack accepts longer texts, but cuts them for display.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    platform: "Slack",
    text: Limit { unit: Unit::Chars, max: 3500, columns: 64 },
    max_upload_bytes: 1_000_000_000,
    // Slack itself allows larger files.
    max_download_bytes: 1_000_000_000,
    edits: true,
    deletes: true,
    buttons: true,
    // The tool of the agent allows fewer.
    form_fields: 48,
    idempotent_send: false,
};

pub(super) const DOCTOR: DoctorFacts = DoctorFacts {
    credentials: "bot token",
    credentials_help: "copy the Bot User OAuth Token (xoxb-) from https://api.slack.com/apps, \"OAuth & Permissions\", into \
                       `bot_token`",
    url_key: "api_url",
    clock: "posts whose time differs by more than five minutes are rejected",
    grant_help: "add {} at https://api.slack.com/apps, \"OAuth & Permissions\", and reinstall the app",
};

/// <https://docs.slack.dev/reference/scopes>
pub(super) const SCOPES: [AppScope; 14] = [
    needed("chat:write", "it cannot answer"),
    needed("app_mentions:read", "it does not receive mentions in channels"),
    needed("im:history", "it does not receive direct messages"),
    useful("channels:read", "links to messages in other public channels are not read"),
    useful("groups:read", "links to messages in other private channels are not read"),
    useful(
        "channels:history",
        "follow-ups in threads and missed messages in public channels are not received",
    ),
    useful(
        "groups:history",
        "follow-ups in threads and missed messages in private channels are not received",
    ),
    useful("mpim:history", "follow-ups and missed messages in group direct messages are not received"),
    useful("commands", "it does not receive the slash command"),
    useful("files:read", "files from users cannot be downloaded"),
    useful("files:write", "files cannot be sent"),
    useful("reactions:write", "users do not see that a message is waiting"),
    useful("users:read", "users are shown by id instead of by name"),
    useful("assistant:write", "the bot's activity may not be shown below a thread"),
];

/// Failures specific to Slack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SlackCase {
    /// A scope is missing.
    #[error("the app lacks the scope {0}")]
    Scope(String),
    /// The message is not an open stream, or is a stream where none is allowed.
    #[error("{0}")]
    Stream(String),
    /// Streams are not supported: an older workspace, or a kind of channel without streams.
    #[error("{0}")]
    NoStream(String),
    /// The text or the blocks are rejected in this form.
    #[error("{0}")]
    Content(String),
}

impl ErrorCase for SlackCase {
    fn general(self) -> CallError {
        let what = self.to_string();
        match self {
            // Without this scope the bot cannot answer; an administrator can add it while the reply is still wanted.
            Self::Scope(scope) if scope.contains("chat:write") => Unconnected(what),
            _ => Refused(what),
        }
    }
}

impl PlatformCase for SlackCase {}

/// Returns whether the failure is permanent: Slack does not support the method, or the app may not call it.
pub(super) fn is_for_good(error: &SlackError) -> bool {
    match error {
        Special(Scope(_)) => true,
        Special(NoStream(what)) => NO_METHOD.contains(&what.as_str()),
        _ => false,
    }
}

/// Classifies an error by its name. `wait` is the value of `Retry-After`, `needed` the missing scope.
pub(super) fn failure(error: &str, wait: Option<Duration>, needed: Option<&str>) -> SlackError {
    let what = if error == "missing_scope" { needed.unwrap_or("required for this") } else { error };
    FAILURES.error(|name| *name == error, 200, what.to_owned(), wait)
}

/// Returns the error that ends listening permanently, if this is one.
pub(super) fn fatal(error: &SlackError) -> Option<ChannelError> {
    match error {
        Auth(what) => Some(ChannelError::Auth(format!(
            "{what}: copy the tokens from https://api.slack.com/apps again, and check that the app is installed"
        ))),
        Special(Scope(scope)) => Some(ChannelError::Config(format!(
            "the token lacks the scope {scope}: add it and reinstall the app"
        ))),
        Refused(what) if what.contains("socket_mode") || what == "link_disabled" => {
            Some(socket_mode_disabled())
        }
        _ => None,
    }
}

/// Returns the error for an app without Socket Mode.
pub(super) fn socket_mode_disabled() -> ChannelError {
    let help =
        "turn it on at https://api.slack.com/apps under \"Socket Mode\", or set `event_delivery: http`";
    ChannelError::Config(format!("Socket Mode is off for this app: {help}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{doctor::tests::check_facts, transport::check_table};

    #[test]
    fn each_row_of_the_tables_is_reached() {
        check_table(&FAILURES, |name, other| name == other);
        check_facts(&DOCTOR, &SCOPES);
    }

    #[test]
    fn each_error_is_classified() {
        let seven = Duration::from_secs(7);
        type SlackErrorConstructor = fn(String) -> SlackError;
        let cases: [(&str, SlackErrorConstructor); 12] = [
            ("invalid_auth", Auth),
            ("account_inactive", Auth),
            ("message_not_found", Gone),
            ("message_not_in_streaming_state", |what| Special(Stream(what))),
            ("streaming_state_conflict", |what| Special(Stream(what))),
            ("channel_type_not_supported", |what| Special(NoStream(what))),
            ("unknown_method", |what| Special(NoStream(what))),
            ("msg_too_long", |what| Special(Content(what))),
            ("internal_error", Unknown),
            ("channel_not_found", Refused),
            ("not_in_channel", Refused),
            ("is_archived", Refused),
        ];
        for (error, meaning) in cases {
            assert_eq!(failure(error, Some(seven), None), meaning(error.into()), "{error}");
        }
        assert_eq!(failure("ratelimited", Some(seven), None), CallError::Wait(seven));
        assert_eq!(failure("ratelimited", None, None), CallError::Wait(Duration::from_secs(2)));
        assert_eq!(failure("missing_scope", None, Some("chat:write")), Special(Scope("chat:write".into())));
    }

    #[test]
    fn only_permanent_failures_switch_a_feature_off() {
        let cases = [
            ("missing_scope", true),
            ("unknown_method", true),
            ("channel_type_not_supported", false),
            ("user_not_found", false),
            ("not_allowed", false),
            ("internal_error", false),
        ];
        for (error, good) in cases {
            assert_eq!(is_for_good(&failure(error, None, None)), good, "{error}");
        }
    }
}
