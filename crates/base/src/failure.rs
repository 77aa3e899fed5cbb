//! Causes of failures and retries, for people. Callers translate them; `Display` gives the English text of the API and
//! the logs.

use crate::UsedBudget;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::fmt;

/// Why a run failed, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailure {
    /// The kind of failure.
    pub class: FailureClass,
    /// The failure and its remedy, in one or two sentences without secrets.
    pub hint: String,
    /// The cause, for callers that translate it. `None` if stored by an older version, or unknown to this one.
    #[serde(default, deserialize_with = "deserialize_known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
}

/// The kinds of failure that people can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The model's provider does not answer, or is overloaded.
    Unavailable,
    /// The provider refused the key.
    Auth,
    /// The account has no credit left.
    Quota,
    /// The provider rejected the request.
    Rejected,
    /// A budget is used up.
    Budget,
    /// The thread's log or the sandbox failed.
    Internal,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The model is overloaded or limits the rate.
    #[error("The model is busy ({detail}). Try again {}.", retry_time(*.minutes))]
    Busy {
        /// The provider's error message.
        detail: String,
        /// Wait that the provider asks for, in minutes, if it is at least two.
        minutes: Option<u64>,
    },
    /// The model cannot be reached.
    #[error("The model cannot be reached ({0}). Try again in a moment.")]
    Unreachable(String),
    /// The provider reported a failure of its own. The detail begins with the HTTP status.
    #[error("The model's provider failed ({0}). Try again in a moment.")]
    Failed(String),
    /// The reply's stream broke off. The log has the details.
    #[error("The connection to the model broke. Try again in a moment.")]
    Cut,
    /// The model's reply could not be parsed. It is never quoted in a chat, since it may contain anything.
    #[error("I could not read the model's answer. Try again.")]
    Garbled,
    /// The provider refused the key.
    #[error("The model's provider rejected the API key ({0}). Please contact your admin.")]
    Auth(String),
    /// The account has no credit.
    #[error("The model's account has no credit left ({0}). Please contact your admin.")]
    Quota(String),
    /// There is no API at the configured URL.
    #[error(
        "The model's address does not lead to an API ({0}). Please contact your admin: the model's `base_url` is \
         wrong (it often ends in /v1). `pudu doctor` checks it."
    )]
    NoApi(String),
    /// The provider does not know the model.
    #[error(
        "The model's provider does not know this model ({0}). /models lists the others. Please contact your admin: \
         the model's name is wrong."
    )]
    UnknownModel(String),
    /// The conversation is longer than the model's context.
    #[error("This conversation has become too long for the model ({0}). /new starts a fresh one.")]
    TooLong(String),
    /// The provider's content filter refused the request.
    #[error(
        "The provider's content filter rejected this. Rephrase your request, or leave out the part that it may \
         object to."
    )]
    Filtered,
    /// The provider rejected the request.
    #[error(
        "The model's provider rejected the request ({0}), and a new attempt would not help. Please contact your \
         admin: the reason often lies in the model's settings."
    )]
    Rejected(String),
    /// The model's reply had no text, even on a second attempt.
    #[error(
        "The model gave no answer, even on a second attempt. Try again, or choose another model with /models."
    )]
    Silent,
    /// The model's reply had images or other media but no text.
    #[error(
        "The model answered only with an image or another file, and I cannot pass those on. Ask for text, or choose \
         another model with /models."
    )]
    OnlyMedia,
    /// The model's reasoning used up the maximum length of a reply.
    #[error(
        "The model spent its whole answer on thinking. Ask for less at once. Your admin may raise the model's \
         `max_tokens` or lower its thinking level."
    )]
    OnlyThought,
    /// A budget is used up, or too little is left. No model is called until it resets.
    #[error("{0}")]
    Budget(UsedBudget),
    /// No model is configured.
    #[error("No model is configured.")]
    NoModel,
    /// There is no agent of this name.
    #[error("There is no agent `{0}`. /agent lists the agents.")]
    UnknownAgent(String),
    /// The agent's files are invalid.
    #[error("The agent `{name}` cannot be used: {why}. /agent lists the agents.")]
    BrokenAgent {
        /// Its name.
        name: String,
        /// The cause and the remedy.
        why: String,
    },
    /// The agent's files could not be read.
    #[error("I could not read the agent. Your admin finds the reason in the log.")]
    UnreadableAgent,
    /// The thread could not be read.
    #[error("I could not read this conversation, so I cannot answer. Send your message again later.")]
    History,
    /// The user's messages could not be stored in the thread.
    #[error("I could not save your message. Send it again. Your admin finds the reason in the log.")]
    Unheard,
    /// The results could not be stored in the thread.
    #[error("I could not save this conversation. Your admin finds the reason in the log.")]
    Unstored,
    /// The code panicked.
    #[error("I had an internal error. Your admin finds it in the log.")]
    Broken,
}

fn retry_time(minutes: Option<u64>) -> String {
    minutes.map_or_else(|| "in a moment".to_owned(), |minutes| format!("in {minutes} minutes"))
}

impl FailureCause {
    fn class(&self) -> FailureClass {
        match self {
            Self::Busy { .. }
            | Self::Unreachable(_)
            | Self::Failed(_)
            | Self::Cut
            | Self::Garbled
            | Self::Silent
            | Self::OnlyThought => FailureClass::Unavailable,
            Self::Auth(_) => FailureClass::Auth,
            Self::Quota(_) => FailureClass::Quota,
            Self::NoApi(_)
            | Self::UnknownModel(_)
            | Self::TooLong(_)
            | Self::Filtered
            | Self::OnlyMedia
            | Self::Rejected(_) => FailureClass::Rejected,
            Self::Budget(_) => FailureClass::Budget,
            Self::NoModel
            | Self::UnknownAgent(_)
            | Self::BrokenAgent { .. }
            | Self::UnreadableAgent
            | Self::History
            | Self::Unheard
            | Self::Unstored
            | Self::Broken => FailureClass::Internal,
        }
    }
}

impl From<FailureCause> for RunFailure {
    fn from(cause: FailureCause) -> Self {
        Self { class: cause.class(), hint: cause.to_string(), cause: Some(cause) }
    }
}

/// Why a model call is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryReason {
    /// It is overloaded.
    Busy,
    /// Its provider limits the rate.
    RateLimited,
    /// Its reply could not be parsed, or broke off.
    Garbled,
    /// It cannot be reached.
    Unreachable,
    /// Its provider reported a failure of its own.
    Failed,
    /// It failed repeatedly and is not called for a while.
    Resting,
    /// It failed permanently, and another model is called.
    FellBack,
}

impl fmt::Display for RetryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the model is busy",
            Self::RateLimited => "the model's provider limits the rate",
            Self::Garbled => "the model's answer was broken",
            Self::Unreachable => "the model cannot be reached",
            Self::Failed => "the model's provider failed",
            Self::Resting => "the model failed repeatedly and is paused",
            Self::FellBack => "the model failed, and another one is called",
        })
    }
}

/// Reads a stored value. An unknown one, of a newer version, becomes `None`.
pub(crate) fn deserialize_known<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    stored: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(stored)?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_providers_and_broken_connections_have_separate_texts() {
        use crate::ModelError;
        let said = |error: &ModelError| RunFailure::from(FailureCause::from(error)).hint;
        assert_eq!(
            said(&ModelError::Failed("HTTP 500: oops".into())),
            "The model's provider failed (HTTP 500: oops). Try again in a moment."
        );
        assert_eq!(
            said(&ModelError::Cut("error reading a body".into())),
            "The connection to the model broke. Try again in a moment."
        );
    }

    #[test]
    fn a_failure_that_an_older_version_stored_is_read() {
        let read = |text: &str| serde_json::from_str::<RunFailure>(text).unwrap();
        let old = RunFailure { class: FailureClass::Quota, hint: "Top up.".into(), cause: None };
        assert_eq!(read(r#"{"class":"quota","hint":"Top up."}"#), old);
        let newer = r#"{"class":"quota","hint":"Top up.","cause":{"of_tomorrow":{"why":1}}}"#;
        assert_eq!(read(newer), old, "the text is kept");
        let busy = RunFailure::from(FailureCause::Busy { detail: "HTTP 429".into(), minutes: Some(3) });
        assert_eq!(busy.hint, "The model is busy (HTTP 429). Try again in 3 minutes.");
        let stored = r#"{"class":"unavailable","hint":"The model is busy (HTTP 429). Try again in 3 minutes.","cause":{"busy":{"detail":"HTTP 429","minutes":3}}}"#;
        assert_eq!((serde_json::to_string(&busy).unwrap().as_str(), read(stored)), (stored, busy));
    }
}
