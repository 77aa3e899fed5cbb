//! Causes of failures and of new tries, for people. Callers word them in the person's language; the
//! words here are the English ones of the API and the logs.

use crate::UsedBudget;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::fmt;

/// Why a run failed, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailure {
    /// The kind of failure.
    pub class: FailureClass,
    /// The failure and its remedy, in a sentence or two, without secrets.
    pub hint: String,
    /// The cause, for those who word it themselves; older versions stored none, and newer ones others.
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
    /// The provider did not accept the request.
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
        /// The provider's words.
        detail: String,
        /// How long it wants to be left alone, where that is longer than a moment.
        minutes: Option<u64>,
    },
    /// The model cannot be reached.
    #[error("The model cannot be reached ({0}). Try again in a moment.")]
    Unreachable(String),
    /// The provider answered that it failed. The detail begins with the status.
    #[error("The model's provider failed ({0}). Try again in a moment.")]
    Failed(String),
    /// The answer ended before its end. The log has the detail.
    #[error("The connection to the model broke off. Try again in a moment.")]
    Cut,
    /// The model's answer cannot be read. It is quoted in no chat: it may be anything.
    #[error("The model's answer could not be read. Try again.")]
    Garbled,
    /// The provider refused the key.
    #[error("The model's provider refused the key ({0}). Whoever runs this bot has to mend it.")]
    Auth(String),
    /// The account has no credit.
    #[error("The model's account has no credit left ({0}). Whoever runs this bot has to mend it.")]
    Quota(String),
    /// Nothing answers where the model is looked for.
    #[error(
        "There is no model where I look for it ({0}). Whoever runs this bot has to mend the model's `base_url`, \
         which often ends in /v1; `pudu doctor` looks at it."
    )]
    NoApi(String),
    /// The provider does not know the model.
    #[error(
        "The model's provider does not know this model ({0}). /models lists those to choose from; whoever runs \
         this bot has to mend its name."
    )]
    UnknownModel(String),
    /// The conversation is longer than the model's context.
    #[error("This conversation has become too long for the model ({0}). /new starts a fresh one.")]
    TooLong(String),
    /// The provider's content filter refused the request.
    #[error(
        "The provider's content filter refused this. Say it in other words, or leave out what it may have taken \
         offence at."
    )]
    Filtered,
    /// The provider did not accept the request.
    #[error(
        "The model's provider did not accept the request ({0}). Asking again does not help. Whoever runs this bot \
         has to look at the model's settings."
    )]
    Rejected(String),
    /// The model's answer had no words, also when it was asked again.
    #[error(
        "The model said nothing, also when asked again. Try again, or choose another model with /models."
    )]
    Silent,
    /// The model's answer had images or other media and no words.
    #[error(
        "The model answered with an image or another file alone, and I cannot pass those on. Ask for words, or choose \
         another model with /models."
    )]
    OnlyMedia,
    /// The model's thoughts took all that one answer may have.
    #[error(
        "The model's thinking used the whole output budget of one answer, so nothing was left to say. Ask for less at \
         once; whoever runs this bot may raise the model's `max_tokens` or let it think less."
    )]
    OnlyThought,
    /// A budget is used up, or too little is left: no model is asked until it begins again.
    #[error("{0}")]
    Budget(UsedBudget),
    /// No model is configured.
    #[error("No model is configured.")]
    NoModel,
    /// There is no agent of this name.
    #[error("There is no agent `{0}`. /agent lists those there are.")]
    UnknownAgent(String),
    /// The agent's files cannot be understood.
    #[error("The agent `{name}` cannot be used: {why}. /agent lists those there are.")]
    BrokenAgent {
        /// Its name.
        name: String,
        /// The cause, and the remedy.
        why: String,
    },
    /// The agent's files could not be read.
    #[error("The agent could not be read just now. Whoever runs this bot finds the reason in the log.")]
    UnreadableAgent,
    /// The thread could not be read.
    #[error("What was said before could not be read, so I cannot answer. Send it again later.")]
    History,
    /// The thread could not store the people's messages.
    #[error(
        "What you said could not be stored. Send it again; whoever runs this bot finds the reason in its log."
    )]
    Unheard,
    /// The thread could not store the results.
    #[error("What was said could not be stored. Whoever runs this bot finds the reason in its log.")]
    Unstored,
    /// The code broke down.
    #[error("Something in me broke. Whoever runs this bot finds it in the log.")]
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

/// Why a model is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryReason {
    /// It is overloaded.
    Busy,
    /// Its provider limits the rate.
    RateLimited,
    /// Its answer was broken.
    Garbled,
    /// It cannot be reached.
    Unreachable,
    /// Its provider answered that it failed.
    Failed,
    /// It failed often and is left alone for a while.
    Resting,
    /// It failed for good, and another model is asked.
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
            Self::Resting => "the model failed often and rests",
            Self::FellBack => "the model failed, and another one is asked",
        })
    }
}

/// Reads a stored value; one of a newer version is none.
pub(crate) fn deserialize_known<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    stored: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(stored)?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_failed_and_a_connection_that_broke_off_were_reached() {
        use crate::ModelError;
        let said = |error: &ModelError| RunFailure::from(FailureCause::from(error)).hint;
        assert_eq!(
            said(&ModelError::Failed("HTTP 500: oops".into())),
            "The model's provider failed (HTTP 500: oops). Try again in a moment."
        );
        assert_eq!(
            said(&ModelError::Cut("error reading a body".into())),
            "The connection to the model broke off. Try again in a moment."
        );
    }

    #[test]
    fn a_failure_that_an_older_version_stored_is_read() {
        let read = |text: &str| serde_json::from_str::<RunFailure>(text).unwrap();
        let old = RunFailure { class: FailureClass::Quota, hint: "Top up.".into(), cause: None };
        assert_eq!(read(r#"{"class":"quota","hint":"Top up."}"#), old);
        let newer = r#"{"class":"quota","hint":"Top up.","cause":{"of_tomorrow":{"why":1}}}"#;
        assert_eq!(read(newer), old, "its words are there");
        let busy = RunFailure::from(FailureCause::Busy { detail: "HTTP 429".into(), minutes: Some(3) });
        assert_eq!(busy.hint, "The model is busy (HTTP 429). Try again in 3 minutes.");
        let stored = r#"{"class":"unavailable","hint":"The model is busy (HTTP 429). Try again in 3 minutes.","cause":{"busy":{"detail":"HTTP 429","minutes":3}}}"#;
        assert_eq!((serde_json::to_string(&busy).unwrap().as_str(), read(stored)), (stored, busy));
    }
}
