//! The port to a language model.

use crate::{
    FailureCause, Finish, Image, Message, ModelCaller, ProviderParts, RetryReason, ToolCall, ToolSpec, Usage,
    UsedBudget,
};
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// A model's reply as it comes. Dropping it cancels the call at once.
pub type ModelStream = BoxStream<'static, Result<Delta, ModelError>>;

/// A language model.
pub trait Model: Send + Sync {
    /// Returns the name under which people know it.
    fn name(&self) -> &str;

    /// Returns the maximum number of tokens of prompt and answer together. The default is the window of most models
    /// today.
    fn context_window(&self) -> u64 {
        128_000
    }

    /// Returns how many tokens a reply may have at most, where its configuration bounds that.
    fn max_output(&self) -> Option<u64> {
        None
    }

    /// Returns the names of all models that may answer: its own, and those of the ones that take its place.
    fn answerers(&self) -> Vec<String> {
        vec![self.name().to_owned()]
    }

    /// Returns whether it can see images.
    fn supports_vision(&self) -> bool {
        false
    }

    /// Returns whether the model understands nothing and only echoes: it is not asked to judge, to suggest or to learn.
    fn only_echoes(&self) -> bool {
        false
    }

    /// Returns the name of the model that answered the newest request in this one's place, if it was not itself.
    fn standby(&self) -> Option<String> {
        None
    }

    /// Asks it. Nothing happens before the stream is polled.
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
    /// Images that it sees behind the newest message; none for a model that cannot see.
    pub images: Vec<ModelImage>,
    /// How hard it thinks first, where it can.
    pub thinking: Thinking,
    /// How it answers, where its own configuration does not decide that.
    pub sampling: Sampling,
    /// Maximum number of tokens of a reply, regardless of the configuration: a budget pays for no more.
    pub most: Option<u32>,
    /// The caller that the usage is counted for.
    pub caller: ModelCaller,
}

/// How a model answers; the model's configuration decides the values that are not set here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// How freely it chooses words, from 0 to 2.
    pub temperature: Option<f64>,
    /// How many tokens a reply may have.
    pub max_tokens: Option<u32>,
}

/// How hard a model thinks before it answers. A model without such a setting ignores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// Not at all, or as little as the model can.
    Off,
    /// As hard as its configuration has it.
    #[default]
    On,
    /// A little.
    Low,
    /// Harder.
    Medium,
    /// Hard.
    High,
}

impl Thinking {
    /// All, from least to most.
    pub const ALL: [Self; 5] = [Self::Off, Self::On, Self::Low, Self::Medium, Self::High];

    /// Returns the word by which people choose it.
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

    /// Reads such a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|thinking| thinking.name().eq_ignore_ascii_case(word.trim()))
    }

    /// Reads DeerFlow's two options: whether the model thinks, and how hard. `None` without either.
    #[must_use]
    pub fn of_options(enabled: Option<bool>, effort: Option<&str>) -> Option<Self> {
        match (enabled, effort) {
            (Some(false), _) | (_, Some("minimal" | "none")) => Some(Self::Off),
            (_, Some(effort)) => Self::parse(effort).filter(|thinking| thinking.effort().is_some()),
            (Some(true), None) => Some(Self::On),
            (None, None) => None,
        }
    }

    /// Returns the word that providers have for the effort; `None` where it is left to the configuration.
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

/// An image as a model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelImage {
    /// Which image of the agent's files.
    pub image: Image,
    /// The image's content.
    pub bytes: Arc<[u8]>,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Words for people.
    Text(String),
    /// The words so far were thoughts, and not for people.
    Retract,
    /// The model's thoughts, for API clients and the page; no chat shows them.
    Reasoning(String),
    /// Parts that the provider wants back with the message.
    ProviderParts(ProviderParts),
    /// An image that the model made: the bytes of its file.
    Image(Vec<u8>),
    /// A whole call of a tool.
    Call(ToolCall),
    /// The cost of the call, once a reply.
    Usage(Usage),
    /// The reply is whole. A stream that ends without this was cut.
    Finish(Finish),
    /// The name of the model that answers from here on, where another one takes the place of the one that was asked.
    Model(String),
    /// The call failed and is made again: earlier deltas do not count.
    Again {
        /// Which try failed, from 1.
        attempt: u32,
        /// How long until the next.
        wait: Duration,
        /// Why.
        reason: RetryReason,
        /// Whether the failed call is not charged, unless something came: [`ModelError::is_free`].
        free: bool,
    },
}

/// Why a model gave no whole reply, by the caller's options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It is overloaded or limits the rate: ask again later.
    #[error("the model is busy: {detail}")]
    Busy {
        /// When the provider wants to be asked again.
        retry_after: Option<Duration>,
        /// Whether it limits the rate of this account, and is not overloaded.
        limited: bool,
        /// The provider's words.
        detail: String,
    },
    /// The connection did not come about, or nothing came in time: ask again.
    #[error("the model cannot be reached: {0}")]
    Unreachable(String),
    /// The provider answered that it failed: ask again.
    #[error("the model's provider failed: {0}")]
    Failed(String),
    /// The answer ended before its end: ask again.
    #[error("the connection to the model broke off: {0}")]
    Cut(String),
    /// The answer violates the protocol: ask again.
    #[error("the model's answer cannot be read: {0}")]
    Garbled(String),
    /// The key was refused. Asking again does not help.
    #[error("the model's provider refused the key: {0}")]
    Auth(String),
    /// The account has no credit. Asking again does not help.
    #[error("the model's provider reports no credit: {0}")]
    Quota(String),
    /// There is nothing that answers where the model is looked for. Asking again does not help.
    #[error("there is no model API at this address: {0}")]
    NoApi(String),
    /// The provider does not know a model of this name. Asking again does not help.
    #[error("the model's provider does not know the model: {0}")]
    UnknownModel(String),
    /// The request exceeds the model's context. Asking less helps.
    #[error("the request is too long for the model: {0}")]
    TooLong(String),
    /// The provider's content filter refused the request. Asking otherwise helps.
    #[error("the provider's content filter refused the request: {0}")]
    Filtered(String),
    /// The request was not accepted. Asking again does not help.
    #[error("the model's provider rejected the request: {0}")]
    Rejected(String),
    /// The reply has media that are no images, or too many and too large ones, and no words. Asking for words, or another model, helps.
    #[error("the model answered with media alone")]
    OnlyMedia,
    /// A budget is used up, or too little is left, so the model was not asked. Asking later helps.
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

    /// Returns whether a request that ended so is not charged: it was turned away before anything was made.
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
