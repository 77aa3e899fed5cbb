//! Mapping of Slack's errors. Most come with HTTP 200; the words are the API's own.

use crate::{
    ChannelError, SendError,
    http::{self, Unread},
    live::CallError,
};
use std::time::Duration;

/// Why a call failed, named by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ApiError {
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

impl ApiError {
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
pub(super) fn failure(error: &str, wait: Option<Duration>, needed: Option<&str>) -> ApiError {
    let what = error.to_owned();
    match error {
        "ratelimited" | "rate_limited" | "message_limit_exceeded" => ApiError::Wait(wait.unwrap_or(WAIT)),
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
        | "app_not_found" => ApiError::Auth(what),
        "missing_scope" => ApiError::Scope(needed.unwrap_or("that this needs").to_owned()),
        "message_not_found"
        | "cant_update_message"
        | "cant_delete_message"
        | "edit_window_closed"
        | "block_mismatch" => ApiError::Gone(what),
        "message_not_in_streaming_state"
        | "streaming_state_conflict"
        | "message_not_owned_by_app"
        | "streaming_mode_mismatch" => ApiError::Stream(what),
        "unknown_method"
        | "method_deprecated"
        | "deprecated_endpoint"
        | "channel_type_not_supported"
        | "missing_recipient_user_id"
        | "missing_recipient_team_id"
        | "user_not_found"
        | "feature_disabled"
        | "not_allowed" => ApiError::NoStream(what),
        "msg_too_long"
        | "msg_blocks_too_long"
        | "invalid_blocks"
        | "invalid_blocks_format"
        | "no_text"
        | "markdown_text_conflict"
        | "invalid_chunks" => ApiError::Content(what),
        "internal_error" | "fatal_error" | "request_timeout" | "service_unavailable" => {
            ApiError::Unknown(what)
        }
        "team_added_to_org" | "accesslimited" => ApiError::Unconnected(what),
        _ => ApiError::Refused(what),
    }
}

/// Classifies an answer that is not the API's own: something on the way made it, or cut it.
pub(super) fn unreadable(status: u16, wait: Option<Duration>) -> ApiError {
    match status {
        413 => ApiError::Refused("the request is too large".to_owned()),
        429 => ApiError::Wait(wait.unwrap_or(WAIT)),
        _ => ApiError::Unknown(format!("an answer that cannot be read (HTTP {status})")),
    }
}

/// Describes an error of the HTTP client without the URL, in which a secret may stand.
pub(super) fn unreachable(error: pudu_net::reqwest::Error) -> ApiError {
    let before = error.is_connect() || error.is_builder();
    let text = http::words(error);
    if before { ApiError::Unconnected(text) } else { ApiError::Unknown(text) }
}

/// Classifies an answer that could not be read: what was asked for is perhaps done.
pub(super) fn unread(error: Unread) -> ApiError {
    match error {
        Unread::Lost(error) => unreachable(error),
        Unread::TooLarge => ApiError::Unknown(Unread::TooLarge.to_string()),
    }
}

impl From<ApiError> for CallError {
    fn from(error: ApiError) -> Self {
        let what = error.to_string();
        match error {
            ApiError::Wait(after) => Self::Wait(after),
            ApiError::Auth(_) | ApiError::Unconnected(_) => Self::Unconnected(what),
            ApiError::Gone(_) => Self::Gone,
            ApiError::Unknown(_) => Self::Unknown(what),
            // Without it the bot is dumb; whoever runs it can give it back while the reply is still wanted.
            ApiError::Scope(scope) if scope.contains("chat:write") => Self::Unconnected(what),
            ApiError::Scope(_)
            | ApiError::Stream(_)
            | ApiError::NoStream(_)
            | ApiError::Content(_)
            | ApiError::Refused(_) => Self::Refused(what),
        }
    }
}

impl From<ApiError> for SendError {
    fn from(error: ApiError) -> Self {
        CallError::from(error).into()
    }
}

/// Returns the error that ends a connection for good, if this is one.
pub(super) fn fatal(error: &ApiError) -> Option<ChannelError> {
    match error {
        ApiError::Auth(what) => Some(ChannelError::Auth(format!(
            "{what}: copy the tokens from https://api.slack.com/apps once more, and see that the app is installed"
        ))),
        ApiError::Scope(scope) => Some(ChannelError::Config(format!(
            "the token lacks the scope {scope}: add it and install the app anew"
        ))),
        ApiError::Refused(what) if what.contains("socket_mode") || what == "link_disabled" => Some(off()),
        _ => None,
    }
}

/// Socket Mode is switched off.
pub(super) fn off() -> ChannelError {
    let mend =
        "switch it on at https://api.slack.com/apps under \"Socket Mode\", or set `event_delivery: http`";
    ChannelError::Config(format!("Socket Mode is off for this app: {mend}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_meaning() {
        let seven = Duration::from_secs(7);
        type Meaning = fn(String) -> ApiError;
        let cases: [(&str, Meaning); 12] = [
            ("invalid_auth", ApiError::Auth),
            ("account_inactive", ApiError::Auth),
            ("message_not_found", ApiError::Gone),
            ("message_not_in_streaming_state", ApiError::Stream),
            ("streaming_state_conflict", ApiError::Stream),
            ("channel_type_not_supported", ApiError::NoStream),
            ("unknown_method", ApiError::NoStream),
            ("msg_too_long", ApiError::Content),
            ("internal_error", ApiError::Unknown),
            ("channel_not_found", ApiError::Refused),
            ("not_in_channel", ApiError::Refused),
            ("is_archived", ApiError::Refused),
        ];
        for (error, meaning) in cases {
            assert_eq!(failure(error, Some(seven), None), meaning(error.into()), "{error}");
        }
        assert_eq!(failure("ratelimited", Some(seven), None), ApiError::Wait(seven));
        assert_eq!(failure("ratelimited", None, None), ApiError::Wait(WAIT));
        assert_eq!(failure("missing_scope", None, Some("chat:write")), ApiError::Scope("chat:write".into()));
        assert_eq!(unreadable(429, Some(seven)), ApiError::Wait(seven));
        assert!(matches!(unreadable(502, None), ApiError::Unknown(_)));
        assert!(matches!(CallError::from(ApiError::Auth("x".into())), CallError::Unconnected(_)));
        assert!(!CallError::from(ApiError::Wait(seven)).may_be_done());
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
