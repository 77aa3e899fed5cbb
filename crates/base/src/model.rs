//! The port to a language model.

use crate::{
    FailureCause, Finish, Image, Message, ModelCaller, ProviderParts, RetryReason, ToolCall, ToolSpec, Usage,
    UsedBudget,
};
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// A model's streamed reply. Dropping it cancels the call at once.
pub type ModelStream = BoxStream<'static, Result<Delta, ModelError>>;

/// A language model.
pub trait Model: Send + Sync {
    /// Returns its configured name, as people see it.
    fn name(&self) -> &str;

    /// Returns the maximum length of prompt and answer together, in tokens. The default is the window of most current
    /// models.
    fn context_window(&self) -> u64 {
        128_000
    }

    /// Returns the maximum length of a reply, in tokens, if its configuration limits it.
    fn max_output(&self) -> Option<u64> {
        None
    }

    /// Returns the names of all models that may answer: this one and its fallbacks.
    fn answerers(&self) -> Vec<String> {
        vec![self.name().to_owned()]
    }

    /// Returns whether it can see images.
    fn supports_vision(&self) -> bool {
        false
    }

    /// Returns whether the model only echoes its input. It is then not used to judge, to suggest or to learn.
    fn only_echoes(&self) -> bool {
        false
    }

    /// Returns the name of the fallback that answered the newest request, if it was not the model itself.
    fn standby(&self) -> Option<String> {
        None
    }

    /// Sends a request. Nothing happens before the stream is polled.
    fn stream(&self, request: Request) -> ModelStream;
}

/// A request to a model.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The system prompt.
    pub system: String,
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools that it may call.
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// Images that it sees after the newest message; empty for a model without vision.
    pub images: Vec<ModelImage>,
    /// Thinking effort, if the model supports thinking.
    pub thinking: Thinking,
    /// Sampling settings that the model's configuration leaves open.
    pub sampling: Sampling,
    /// Maximum length of a reply that a budget pays for, in tokens, regardless of the configuration.
    pub most: Option<u32>,
    /// The caller that the usage is counted for.
    pub caller: ModelCaller,
}

/// Sampling settings. The model's configuration decides values that are not set here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Temperature, from 0 to 2.
    pub temperature: Option<f64>,
    /// Maximum length of a reply, in tokens.
    pub max_tokens: Option<u32>,
}

/// Thinking effort of a model. Models without such a setting ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// Not at all, or as little as the model can.
    Off,
    /// As configured for the model.
    #[default]
    On,
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
}

impl Thinking {
    /// All, from least to most.
    pub const ALL: [Self; 5] = [Self::Off, Self::On, Self::Low, Self::Medium, Self::High];

    /// Returns the name by which people choose it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Parses a [`Self::name`], in any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|thinking| thinking.name().eq_ignore_ascii_case(word.trim()))
    }

    /// Converts DeerFlow's two options: whether the model thinks, and its effort. Returns `None` if neither is set.
    #[must_use]
    pub fn of_options(enabled: Option<bool>, effort: Option<&str>) -> Option<Self> {
        match (enabled, effort) {
            (Some(false), _) | (_, Some("minimal" | "none")) => Some(Self::Off),
            (_, Some(effort)) => Self::parse(effort).filter(|thinking| thinking.effort().is_some()),
            (Some(true), None) => Some(Self::On),
            (None, None) => None,
        }
    }

    /// Returns the providers' name of the effort; `None` if thinking is off or its effort is left to the configuration.
    #[must_use]
    pub fn effort(self) -> Option<&'static str> {
        match self {
            Self::Off | Self::On => None,
            Self::Low => Some("low"),
            Self::Medium => Some("medium"),
            Self::High => Some("high"),
        }
    }
}

/// An image in a request to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelImage {
    /// The image's path and media type.
    pub image: Image,
    /// The image's content.
    pub bytes: Arc<[u8]>,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Text for people.
    Text(String),
    /// The text so far was reasoning and is not for people.
    Retract,
    /// The model's reasoning, for API clients and the page. Chats never show it.
    Reasoning(String),
    /// Parts that must be sent back to the provider with the message.
    ProviderParts(ProviderParts),
    /// An image that the model generated: the bytes of its file.
    Image(Vec<u8>),
    /// A complete tool call.
    Call(ToolCall),
    /// Token usage of the call, once per reply.
    Usage(Usage),
    /// The reply ended. A stream without this was cut.
    Finish(Finish),
    /// Name of the fallback model that answers from here on.
    Model(String),
    /// The call failed and is repeated. Earlier deltas are void.
    Again {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Time until the next attempt.
        wait: Duration,
        /// Why.
        reason: RetryReason,
        /// Whether the failed call is free unless something was received: see [`ModelError::is_free`].
        free: bool,
    },
}

/// Why a model gave no complete reply. The variants differ in how the caller can react.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It is overloaded or limits the rate. Retry later.
    #[error("the model is busy: {detail}")]
    Busy {
        /// Wait before the next request, if the provider asks for one.
        retry_after: Option<Duration>,
        /// Whether the account's rate limit was hit, rather than the provider being overloaded.
        limited: bool,
        /// The provider's error message.
        detail: String,
    },
    /// The connection failed or timed out. Retry.
    #[error("the model cannot be reached: {0}")]
    Unreachable(String),
    /// The provider reported a failure of its own. Retry.
    #[error("the model's provider failed: {0}")]
    Failed(String),
    /// The stream broke off. Retry.
    #[error("the connection to the model broke off: {0}")]
    Cut(String),
    /// The answer violates the protocol. Retry.
    #[error("the model's answer could not be read: {0}")]
    Garbled(String),
    /// The key was refused. A retry does not help.
    #[error("the model's provider refused the key: {0}")]
    Auth(String),
    /// The account has no credit. A retry does not help.
    #[error("the model's provider reports no credit: {0}")]
    Quota(String),
    /// There is no API at the configured URL. A retry does not help.
    #[error("there is no model API at this address: {0}")]
    NoApi(String),
    /// The provider does not know the model's name. A retry does not help.
    #[error("the model's provider does not know the model: {0}")]
    UnknownModel(String),
    /// The request exceeds the model's context. A shorter request helps.
    #[error("the request is too long for the model: {0}")]
    TooLong(String),
    /// The provider's content filter refused the request. Rephrasing helps.
    #[error("the provider's content filter refused the request: {0}")]
    Filtered(String),
    /// The request was rejected. A retry does not help.
    #[error("the model's provider rejected the request: {0}")]
    Rejected(String),
    /// The reply has no text, and only media that are not images, or too many or too large images. Asking for text, or
    /// another model, helps.
    #[error("the model answered with media alone")]
    OnlyMedia,
    /// A budget is used up, or too little is left, so the model was not called. Waiting helps.
    #[error("the model was not asked: {0}")]
    Budget(UsedBudget),
}

impl ModelError {
    /// Returns whether the same request may succeed later.
    #[must_use]
    pub fn retriable(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Unreachable(_) | Self::Failed(_) | Self::Cut(_) | Self::Garbled(_)
        )
    }

    /// Returns whether a request with this error is free, because it was rejected before any tokens were generated.
    #[must_use]
    pub fn is_free(&self) -> bool {
        !self.retriable() && !matches!(self, Self::Filtered(_) | Self::OnlyMedia)
            || matches!(self, Self::Busy { .. })
    }
}

impl From<&ModelError> for FailureCause {
    fn from(error: &ModelError) -> Self {
        match error.clone() {
            ModelError::Busy { retry_after, detail, .. } => {
                let minutes = retry_after.map(|wait| wait.as_secs()).filter(|seconds| *seconds >= 120);
                Self::Busy { detail, minutes: minutes.map(|seconds| seconds.div_ceil(60)) }
            }
            ModelError::Unreachable(detail) => Self::Unreachable(detail),
            ModelError::Failed(detail) => Self::Failed(detail),
            ModelError::Cut(_) => Self::Cut,
            ModelError::Garbled(_) => Self::Garbled,
            ModelError::Auth(detail) => Self::Auth(detail),
            ModelError::Quota(detail) => Self::Quota(detail),
            ModelError::NoApi(detail) => Self::NoApi(detail),
            ModelError::UnknownModel(detail) => Self::UnknownModel(detail),
            ModelError::TooLong(detail) => Self::TooLong(detail),
            ModelError::Filtered(_) => Self::Filtered,
            ModelError::Rejected(detail) => Self::Rejected(detail),
            ModelError::OnlyMedia => Self::OnlyMedia,
            ModelError::Budget(used) => Self::Budget(used),
        }
    }
}

impl From<&ModelError> for RetryReason {
    fn from(error: &ModelError) -> Self {
        match error {
            ModelError::Busy { limited: true, .. } => Self::RateLimited,
            ModelError::Busy { .. } => Self::Busy,
            ModelError::Garbled(_) => Self::Garbled,
            ModelError::Failed(_) => Self::Failed,
            _ => Self::Unreachable,
        }
    }
}
