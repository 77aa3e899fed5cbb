//! Mapping of Slack's errors. Most come with HTTP 200; the words are the API's own.

use crate::{
    ChannelError,
    transport::{CallError, ErrorCase, PlatformCase},
};
use std::time::Duration;

/// Why a call failed.
pub(super) type SlackError = CallError<SlackCase>;

/// Failures that only Slack has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SlackCase {
    /// A scope is missing.
    #[error("the app lacks the scope {0}")]
    Scope(String),
    /// The message is not a stream that is open, or it is one where none may be.
    #[error("{0}")]
    Stream(String),
    /// There are no streams here: an older workspace, or a kind of channel that has none.
    #[error("{0}")]
    NoStream(String),
    /// The text or blocks are not taken as they are.
    #[error("{0}")]
    Content(String),
}

impl ErrorCase for SlackCase {
    fn general(self) -> CallError {
        let what = self.to_string();
        match self {
            // Without it the bot cannot answer; an administrator can restore it while the reply is still wanted.
            Self::Scope(scope) if scope.contains("chat:write") => CallError::Unconnected(what),
            _ => CallError::Refused(what),
        }
    }

    fn is_outage(&self) -> bool {
        false
    }
}

impl PlatformCase for SlackCase {}

/// Returns whether Slack has no such method here, or the app may never call it.
pub(super) fn is_for_good(error: &SlackError) -> bool {
    let gone = ["unknown_method", "method_deprecated", "deprecated_endpoint"];
    match error {
        CallError::Special(SlackCase::Scope(_)) => true,
        CallError::Special(SlackCase::NoStream(what)) => gone.contains(&what.as_str()),
        _ => false,
    }
}

/// The wait where Slack does not say how long.
const DEFAULT_WAIT: Duration = Duration::from_secs(2);

/// Classifies an error by its name. `wait` is what `Retry-After` says, `needed` the scope that is missing.
pub(super) fn failure(error: &str, wait: Option<Duration>, needed: Option<&str>) -> SlackError {
    let what = error.to_owned();
    match error {
        "ratelimited" | "rate_limited" | "message_limit_exceeded" => {
            CallError::Wait(wait.unwrap_or(DEFAULT_WAIT))
        }
        "not_authed"
        | "invalid_auth"
        | "account_inactive"
        | "token_revoked"
        | "token_expired"
        | "user_removed_from_team"
        | "team_disabled"
        | "org_login_required"
        | "ekm_access_denied"
        | "not_allowed_token_type"
        | "two_factor_setup_required"
        | "app_not_found" => CallError::Auth(what),
        "missing_scope" => {
            CallError::Special(SlackCase::Scope(needed.unwrap_or("that this needs").to_owned()))
        }
        "message_not_found"
        | "cant_update_message"
        | "cant_delete_message"
        | "edit_window_closed"
        | "block_mismatch" => CallError::Gone(what),
        "message_not_in_streaming_state"
        | "streaming_state_conflict"
        | "message_not_owned_by_app"
        | "streaming_mode_mismatch" => CallError::Special(SlackCase::Stream(what)),
        "unknown_method"
        | "method_deprecated"
        | "deprecated_endpoint"
        | "channel_type_not_supported"
        | "missing_recipient_user_id"
        | "missing_recipient_team_id"
        | "user_not_found"
        | "feature_disabled"
        | "not_allowed" => CallError::Special(SlackCase::NoStream(what)),
        "msg_too_long"
        | "msg_blocks_too_long"
        | "invalid_blocks"
        | "invalid_blocks_format"
        | "no_text"
        | "markdown_text_conflict"
        | "invalid_chunks" => CallError::Special(SlackCase::Content(what)),
        "internal_error" | "fatal_error" | "request_timeout" | "service_unavailable" => {
            CallError::Unknown(what)
        }
        "team_added_to_org" | "accesslimited" => CallError::Unconnected(what),
        _ => CallError::Refused(what),
    }
}

/// Returns the error that ends a connection for good, if this is one.
pub(super) fn fatal(error: &SlackError) -> Option<ChannelError> {
    match error {
        CallError::Auth(what) => Some(ChannelError::Auth(format!(
            "{what}: copy the tokens from https://api.slack.com/apps once more, and see that the app is installed"
        ))),
        CallError::Special(SlackCase::Scope(scope)) => Some(ChannelError::Config(format!(
            "the token lacks the scope {scope}: add it and install the app anew"
        ))),
        CallError::Refused(what) if what.contains("socket_mode") || what == "link_disabled" => {
            Some(socket_mode_disabled())
        }
        _ => None,
    }
}

/// Socket Mode is switched off.
pub(super) fn socket_mode_disabled() -> ChannelError {
    let help =
        "switch it on at https://api.slack.com/apps under \"Socket Mode\", or set `event_delivery: http`";
    ChannelError::Config(format!("Socket Mode is off for this app: {help}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_meaning() {
        let seven = Duration::from_secs(7);
        type SlackErrorConstructor = fn(String) -> SlackError;
        let cases: [(&str, SlackErrorConstructor); 12] = [
            ("invalid_auth", CallError::Auth),
            ("account_inactive", CallError::Auth),
            ("message_not_found", CallError::Gone),
            ("message_not_in_streaming_state", |what| CallError::Special(SlackCase::Stream(what))),
            ("streaming_state_conflict", |what| CallError::Special(SlackCase::Stream(what))),
            ("channel_type_not_supported", |what| CallError::Special(SlackCase::NoStream(what))),
            ("unknown_method", |what| CallError::Special(SlackCase::NoStream(what))),
            ("msg_too_long", |what| CallError::Special(SlackCase::Content(what))),
            ("internal_error", CallError::Unknown),
            ("channel_not_found", CallError::Refused),
            ("not_in_channel", CallError::Refused),
            ("is_archived", CallError::Refused),
        ];
        for (error, meaning) in cases {
            assert_eq!(failure(error, Some(seven), None), meaning(error.into()), "{error}");
        }
        assert_eq!(failure("ratelimited", Some(seven), None), CallError::Wait(seven));
        assert_eq!(failure("ratelimited", None, None), CallError::Wait(DEFAULT_WAIT));
        assert_eq!(
            failure("missing_scope", None, Some("chat:write")),
            CallError::Special(SlackCase::Scope("chat:write".into()))
        );
    }

    #[test]
    fn only_what_holds_everywhere_switches_something_off() {
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
