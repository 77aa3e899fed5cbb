//! Mapping of Slack's errors. Most come with HTTP 200; the words are the API's own.

use crate::{
    ChannelError, SendError,
    http::{self, Unread},
    reply::CallError,
};
use std::time::Duration;

/// Why a call failed, named by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SlackApiError {
    /// Too many calls. Nothing was done.
    #[error("Slack asks to wait {0:?}")]
    Wait(Duration),
    /// The credentials are not valid. Nothing was done.
    #[error("Slack refused the credentials: {0}")]
    Auth(String),
    /// A scope is missing.
    #[error("the app lacks the scope {0}")]
    Scope(String),
    /// The message is not there or cannot change.
    #[error("{0}")]
    Gone(String),
    /// The message is not a stream that is open, or it is one where none may be.
    #[error("{0}")]
    Stream(String),
    /// There are no streams here: an older workspace, or a kind of channel that has none.
    #[error("{0}")]
    NoStream(String),
    /// The text or blocks are not taken as they are.
    #[error("{0}")]
    Content(String),
    /// Trying again does not help.
    #[error("Slack says {0}")]
    Refused(String),
    /// No connection came about. Nothing was done.
    #[error("{0}")]
    Unconnected(String),
    /// The call may have been done or not.
    #[error("{0}")]
    Unknown(String),
}

impl SlackApiError {
    /// Returns whether Slack, or the way to it, does not work now.
    pub(super) fn is_outage(&self) -> bool {
        matches!(self, Self::Unconnected(_) | Self::Unknown(_))
    }

    /// Returns whether Slack has no such method here, or the app may never call it.
    pub(super) fn is_for_good(&self) -> bool {
        let gone = ["unknown_method", "method_deprecated", "deprecated_endpoint"];
        match self {
            Self::Scope(_) => true,
            Self::NoStream(what) => gone.contains(&what.as_str()),
            _ => false,
        }
    }
}

/// The wait where Slack does not say how long.
const WAIT: Duration = Duration::from_secs(2);

/// Classifies an error by its name. `wait` is what `Retry-After` says, `needed` the scope that is missing.
pub(super) fn failure(error: &str, wait: Option<Duration>, needed: Option<&str>) -> SlackApiError {
    let what = error.to_owned();
    match error {
        "ratelimited" | "rate_limited" | "message_limit_exceeded" => {
            SlackApiError::Wait(wait.unwrap_or(WAIT))
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
        | "app_not_found" => SlackApiError::Auth(what),
        "missing_scope" => SlackApiError::Scope(needed.unwrap_or("that this needs").to_owned()),
        "message_not_found"
        | "cant_update_message"
        | "cant_delete_message"
        | "edit_window_closed"
        | "block_mismatch" => SlackApiError::Gone(what),
        "message_not_in_streaming_state"
        | "streaming_state_conflict"
        | "message_not_owned_by_app"
        | "streaming_mode_mismatch" => SlackApiError::Stream(what),
        "unknown_method"
        | "method_deprecated"
        | "deprecated_endpoint"
        | "channel_type_not_supported"
        | "missing_recipient_user_id"
        | "missing_recipient_team_id"
        | "user_not_found"
        | "feature_disabled"
        | "not_allowed" => SlackApiError::NoStream(what),
        "msg_too_long"
        | "msg_blocks_too_long"
        | "invalid_blocks"
        | "invalid_blocks_format"
        | "no_text"
        | "markdown_text_conflict"
        | "invalid_chunks" => SlackApiError::Content(what),
        "internal_error" | "fatal_error" | "request_timeout" | "service_unavailable" => {
            SlackApiError::Unknown(what)
        }
        "team_added_to_org" | "accesslimited" => SlackApiError::Unconnected(what),
        _ => SlackApiError::Refused(what),
    }
}

/// Classifies an answer that is not the API's own: something on the way made it, or cut it.
pub(super) fn unreadable(status: u16, wait: Option<Duration>) -> SlackApiError {
    match status {
        413 => SlackApiError::Refused("the request is too large".to_owned()),
        429 => SlackApiError::Wait(wait.unwrap_or(WAIT)),
        _ => SlackApiError::Unknown(format!("an answer that cannot be read (HTTP {status})")),
    }
}

/// Describes an error of the HTTP client without the URL, in which a secret may stand.
pub(super) fn unreachable(error: pudu_net::reqwest::Error) -> SlackApiError {
    let before = error.is_connect() || error.is_builder();
    let text = http::words(error);
    if before { SlackApiError::Unconnected(text) } else { SlackApiError::Unknown(text) }
}

/// Classifies an answer that could not be read: what was asked for is perhaps done.
pub(super) fn unread(error: Unread) -> SlackApiError {
    match error {
        Unread::Lost(error) => unreachable(error),
        Unread::TooLarge => SlackApiError::Unknown(Unread::TooLarge.to_string()),
    }
}

impl From<SlackApiError> for CallError {
    fn from(error: SlackApiError) -> Self {
        let what = error.to_string();
        match error {
            SlackApiError::Wait(after) => Self::Wait(after),
            SlackApiError::Auth(_) | SlackApiError::Unconnected(_) => Self::Unconnected(what),
            SlackApiError::Gone(_) => Self::Gone,
            SlackApiError::Unknown(_) => Self::Unknown(what),
            // Without it the bot is dumb; whoever runs it can give it back while the reply is still wanted.
            SlackApiError::Scope(scope) if scope.contains("chat:write") => Self::Unconnected(what),
            SlackApiError::Scope(_)
            | SlackApiError::Stream(_)
            | SlackApiError::NoStream(_)
            | SlackApiError::Content(_)
            | SlackApiError::Refused(_) => Self::Refused(what),
        }
    }
}

impl From<SlackApiError> for SendError {
    fn from(error: SlackApiError) -> Self {
        CallError::from(error).into()
    }
}

/// Returns the error that ends a connection for good, if this is one.
pub(super) fn fatal(error: &SlackApiError) -> Option<ChannelError> {
    match error {
        SlackApiError::Auth(what) => Some(ChannelError::Auth(format!(
            "{what}: copy the tokens from https://api.slack.com/apps once more, and see that the app is installed"
        ))),
        SlackApiError::Scope(scope) => Some(ChannelError::Config(format!(
            "the token lacks the scope {scope}: add it and install the app anew"
        ))),
        SlackApiError::Refused(what) if what.contains("socket_mode") || what == "link_disabled" => {
            Some(off())
        }
        _ => None,
    }
}

/// Socket Mode is switched off.
pub(super) fn off() -> ChannelError {
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
        type SlackErrorConstructor = fn(String) -> SlackApiError;
        let cases: [(&str, SlackErrorConstructor); 12] = [
            ("invalid_auth", SlackApiError::Auth),
            ("account_inactive", SlackApiError::Auth),
            ("message_not_found", SlackApiError::Gone),
            ("message_not_in_streaming_state", SlackApiError::Stream),
            ("streaming_state_conflict", SlackApiError::Stream),
            ("channel_type_not_supported", SlackApiError::NoStream),
            ("unknown_method", SlackApiError::NoStream),
            ("msg_too_long", SlackApiError::Content),
            ("internal_error", SlackApiError::Unknown),
            ("channel_not_found", SlackApiError::Refused),
            ("not_in_channel", SlackApiError::Refused),
            ("is_archived", SlackApiError::Refused),
        ];
        for (error, meaning) in cases {
            assert_eq!(failure(error, Some(seven), None), meaning(error.into()), "{error}");
        }
        assert_eq!(failure("ratelimited", Some(seven), None), SlackApiError::Wait(seven));
        assert_eq!(failure("ratelimited", None, None), SlackApiError::Wait(WAIT));
        assert_eq!(
            failure("missing_scope", None, Some("chat:write")),
            SlackApiError::Scope("chat:write".into())
        );
        assert_eq!(unreadable(429, Some(seven)), SlackApiError::Wait(seven));
        assert!(matches!(unreadable(502, None), SlackApiError::Unknown(_)));
        assert!(matches!(CallError::from(SlackApiError::Auth("x".into())), CallError::Unconnected(_)));
        assert!(!CallError::from(SlackApiError::Wait(seven)).may_be_done());
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
            assert_eq!(failure(error, None, None).is_for_good(), good, "{error}");
        }
    }
}
